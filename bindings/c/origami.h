/* liborigami: origami's models in a process, without a plugin, for C and every language that can call C.
 *
 * A program opens a model once for a device, and then asks it about any number of problems. Every function may be
 * called from several threads at once. The library keeps no pointers of the caller and writes every result to memory of
 * the caller.
 *
 * A forked child of a process that has loaded this library cannot use it, because a fork does not copy the threads of
 * the library's runtime. Every call there returns ORIGAMI_INTERNAL with a text that says so, and no answer. Load the
 * library after the fork, or start the process by exec. A child that was made by clone() or _Fork(), and not by fork(),
 * is not noticed, and a call there may hang.
 */
#ifndef ORIGAMI_H
#define ORIGAMI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. A library keeps every function of its version and the layout of every struct. If
 * origami_api_version returns another number, the layout differs. */
#define ORIGAMI_API_VERSION 4

/* The version of origami that this header belongs to. */
#define ORIGAMI_VERSION "0.2.0-dev"

/* What functions return. The exit codes of the command line are the same numbers. */
enum {
	ORIGAMI_OK = 0,
	ORIGAMI_INTERNAL = 1, /* a failure that no input causes: a bug, or a call in a forked child */
	ORIGAMI_INPUT = 2,    /* a request that cannot be answered as asked */
	ORIGAMI_PLUGIN = 3,   /* a model answered nonsense, such as a time that is not finite */
	ORIGAMI_DEVICE = 4    /* a GPU or its driver cannot do what a plan needs */
};

/* Element types. The list is generated from core/gemm. */
enum {
	ORIGAMI_FP16 = 1,
	ORIGAMI_BF16 = 2,
	ORIGAMI_FP32 = 3,
	ORIGAMI_TF32 = 4,
	ORIGAMI_FP8 = 5, /* e4m3 */
	ORIGAMI_INT8 = 6,
	ORIGAMI_FP8_E5M2 = 7,
	ORIGAMI_INT32 = 8, /* of C only */
	ORIGAMI_FP4 = 9, /* e2m1 */
	ORIGAMI_FP6 = 10, /* e2m3 */
	ORIGAMI_FP6_E3M2 = 11
};

/* What is done to C before it is stored. */
enum {
	ORIGAMI_IDENTITY = 0,
	ORIGAMI_RELU = 1,
	ORIGAMI_GELU = 2, /* with the error function */
	ORIGAMI_GELU_TANH = 3,
	ORIGAMI_SILU = 4,
	/* The first half of the columns of A B are gates: each becomes its activation times its column of the second half. C
	 * has n / 2 columns, and n is even. */
	ORIGAMI_GELU_GATED = 5,
	ORIGAMI_GELU_TANH_GATED = 6,
	ORIGAMI_SILU_GATED = 7
};

/* The bias. */
enum {
	ORIGAMI_BIAS_NONE = 0,
	ORIGAMI_BIAS = 1,     /* of the type of C */
	ORIGAMI_BIAS_FP32 = 2
};

/* What is added besides the bias. */
enum {
	ORIGAMI_ADDS_NOTHING = 0,
	ORIGAMI_ADDS_C = 1,   /* what C holds, times beta, before the bias and the activation */
	ORIGAMI_ADDS_LAST = 2 /* R, behind the activation. It has the type and the shape of C */
};

/* What limits a kernel. */
/* bound: go generate ./ask */
enum {
	ORIGAMI_BOUND_UNKNOWN = 0,
	ORIGAMI_BOUND_COMPUTE = 1,
	ORIGAMI_BOUND_L2 = 2,
	ORIGAMI_BOUND_MALL = 3,
	ORIGAMI_BOUND_DRAM = 4,
	ORIGAMI_BOUND_LATENCY = 5,
	ORIGAMI_BOUND_L1 = 6,
	ORIGAMI_BOUND_SHARED_MEMORY = 7,
	ORIGAMI_BOUND_ISSUE = 8
};

/* C[m x n] = A[m x k] B[k x n], batch times. All sizes are at least 1. trans_a: A is contiguous along m, not k.
 * trans_b: B is contiguous along k, not n. C is contiguous along n. Set the whole struct to zeros first: all but the
 * sizes, batch and dtype may be 0.
 *
 * With groups, the rows of A and C come in groups, one after another, and each group has a B of its own, as with the
 * experts of a mixture. groups has the rows of each, 0 for an empty one; m is their sum. A call reads the list and does
 * not keep it. */
typedef struct {
	int64_t m, n, k, batch;
	int32_t dtype;            /* of A and B */
	uint8_t trans_a, trans_b; /* 0 or 1 */
	uint8_t bias;             /* ORIGAMI_BIAS_...: a vector of n elements is added to each row */
	uint8_t activation;       /* ORIGAMI_IDENTITY, ..: what is done to C then */
	int64_t lda, ldb, ldc;    /* leading dimensions: elements from row to row; 0 for dense rows */
	int32_t out_dtype;        /* of C; 0 for what goes with dtype: dtype itself, but FP32 with TF32, FP16 with both FP8,
	                           * INT32 with INT8 */
	uint8_t align_a, align_b, align_c; /* 1, 2, 4, 8 or 16: bytes that divide the addresses of A, B and C; 0 is 16 */
	uint8_t adds;                      /* ORIGAMI_ADDS_... */
	const int64_t *groups;             /* group_count numbers of rows */
	uint64_t group_count;              /* at most 1024; 0 for a problem without groups */
	uint8_t scales;                    /* 0 or 1: A B is multiplied with scales of its rows and columns, of fp32 */
	uint8_t reserved[7];
} origami_problem;

/* A kernel configuration and what the model predicts for it. The fields are those of the answer in JSON; what JSON leaves
 * out or has as null is 0. xcds and chunk are 0 if the GPU has one die, low and high if the model has no interval or was
 * not checked on the likes of the problem; origami_describe has the level. bound is ORIGAMI_BOUND_.... axes has the values
 * on the kernel family's named axes, "name=value,name=value"; often empty. */
/* origami_pick: go generate ./ask */
typedef struct {
	/* block_m, block_n, block_k, group_m, num_warps, num_stages, split_k. Of the kernel family library nobody
	 * knows the launch order, warps and stages: they are null. If the kernel family declares axes, axes: the
	 * values, as text by name, that are not the default */
	int32_t block_m, block_n, block_k, group_m, num_warps, num_stages, split_k;
	/* the dies over which consecutive workgroups are distributed */
	int32_t xcds;
	/* the workgroups per die at a time, 0 for the default */
	int32_t chunk;
	/* what limits the kernel: compute, l2, mall, dram, latency, l1, shared_memory, issue or unknown */
	int32_t bound;
	/* the predicted total in cycles */
	double cycles;
	/* cycles ÷ clock_hz */
	double seconds;
	/* the low and the high end of the time, unless the model states none */
	double low, high;
	char axes[128];
} origami_pick;

/* What the model's uncertainty means for the pick of a problem. known is 0 if the model was not checked on the likes of
 * the problem; the other fields are then 0. */
/* origami_regret: go generate ./ask */
typedef struct {
	/* the expected regret of the pick: how much slower it is than the fastest other candidate, as a fraction of
	 * that candidate's time. With --regret or --measure auto, if the model has an interval */
	double expected;
	/* with expected_regret: the number of leading candidates that are worth measuring before the fastest is taken;
	 * 1 means that the pick can be taken unmeasured */
	int32_t worth_measuring;
	int32_t known;
} origami_regret;

/* What a launcher fills a parameter with. */
enum {
	ORIGAMI_ROLE_CONSTANT = 0, /* origami_parameter.value */
	ORIGAMI_ROLE_MAP = 1,      /* the tensor map of that index */
	ORIGAMI_ROLE_A = 2,        /* addresses in device memory */
	ORIGAMI_ROLE_B = 3,
	ORIGAMI_ROLE_C = 4,
	ORIGAMI_ROLE_BIAS = 5,
	ORIGAMI_ROLE_PARTIALS = 6,
	ORIGAMI_ROLE_COUNTERS = 7,
	ORIGAMI_ROLE_ALPHA = 8, /* float, or int32_t if the kernel is integer */
	ORIGAMI_ROLE_BETA = 9,
	ORIGAMI_ROLE_R = 10, /* the address of R, or of C where that is added */
	ORIGAMI_ROLE_SCALE_A = 11,
	ORIGAMI_ROLE_SCALE_B = 12,
	ORIGAMI_ROLE_STEP_A = 13, /* from one scale to the next: 1, or 0 where there is one for all */
	ORIGAMI_ROLE_STEP_B = 14
};

/* A parameter of a kernel. */
typedef struct {
	int32_t role;  /* ORIGAMI_ROLE_... */
	int32_t bytes; /* 4, 8, or 128 for a tensor map */
	uint64_t value;
} origami_parameter;

/* A tensor map of three dimensions, as cuTensorMapEncodeTiled takes it: without interleaving, with the 128-byte swizzle,
 * zeros outside, and lines to the L2 in pairs where strides[0] is a multiple of 128. */
typedef struct {
	int32_t type;   /* CUtensorMapDataType */
	int32_t matrix; /* 0: A, 1: B, 2: C */
	uint64_t sizes[3];   /* elements */
	uint64_t strides[2]; /* bytes */
	uint32_t box[3];
	uint32_t reserved;
} origami_map;

#define ORIGAMI_PARAMETERS 48 /* the most that a kernel has */

/* A generated kernel and its launch for one problem. workspace: a launch needs counters and partials bytes of device
 * memory besides the matrices, each aligned to 256 bytes, one of both for launches that may overlap. The counters must be
 * zero before the first launch, and each launch leaves them at zero. */
typedef struct {
	char entry[192];       /* the name of the kernel in its PTX */
	uint64_t shared_memory; /* dynamic, bytes */
	uint64_t counters, partials;
	uint32_t grid[3], threads; /* a CTA has threads in one dimension */
	uint32_t parameter_count, map_count;
	uint8_t adds, integer, reserved[6];
	origami_map maps[3];
	origami_parameter parameters[48];
} origami_kernel;

/* The sizes M that bands are asked for. Set the whole struct to zeros first. */
typedef struct {
	int64_t low;         /* the first M of a range, which ends at the problem's m */
	const int64_t *list; /* count single sizes in place of a range; the problem's m does not count then */
	uint64_t count;
	const char *same;    /* axes that have one value for all M, with commas between them; NULL for none. The library is
	                      * left out then: it has nothing in common with other kernels */
} origami_range;

/* What the kernels for all M have in common, and what that costs: how much slower kernels are than the fastest of the
 * family for each M, as a fraction, predicted. one is the single kernel that costs least for all M; its times are those
 * of the largest M, and its block_m is 0 if there is none. */
typedef struct {
	char values[256]; /* the axes and their values, "block_k=64, num_stages=3"; empty if none was asked for */
	double mean_price, worst_price;
	int64_t worst_m;
	double one_mean_price, one_worst_price;
	int64_t one_worst_m;
	origami_pick one;
} origami_same;

/* A band: the sizes M from m_low to m_high, and the kernel for them. pick has the configuration; its times and its
 * launch order are those of m_high. library is 1 where the vendor's library is taken; pick is then its
 * prediction. The regret is how much slower the band's kernel is than the pick for each M, as a fraction. The prices are
 * the mean ones of origami_same in this band. */
typedef struct {
	int64_t m_low, m_high;
	double mean_regret, worst_regret;
	int64_t worst_m;
	int32_t library, reserved;
	double seconds_low, seconds_high; /* predicted for m_low and m_high */
	origami_pick pick;
	double same_price, one_price;
} origami_band;

/* A launch that is ready: a kernel on a device, for one problem. */
typedef struct origami_plan origami_plan;

/* What differs between launches of a plan. */
typedef struct {
	uint64_t a, b, c, bias, counters, partials; /* addresses in device memory; 0 for what the kernel does not need */
	float alpha, beta;
	void *stream; /* CUstream, cudaStream_t */
	uint64_t r;   /* the address of what is added, with the leading dimension of C and as aligned; 0 for C itself */
	uint64_t scale_a, scale_b;       /* addresses in device memory */
	uint32_t step_a, step_b;         /* 1 for a scale of each row of A, or column of B; 0 for one of all */
} origami_call;

/* An open model; 0 is none. A handle is never reused, so using a closed one is only an error. */
typedef uint64_t origami_model;

/* Every function that can fail takes a buffer for an error text last. If error is not NULL and error_size not 0, the
 * buffer gets one line of printable UTF-8 that says what was wrong, where and what to do. It is cut to error_size - 1
 * bytes, between characters, and ends with 0. It is empty on success. The library writes no more than the text, so
 * error_size may be larger than the buffer if 16 KiB fit. With ORIGAMI_OK, every number of an answer is finite. */
/* ORIGAMI_API_VERSION of the library. */
int32_t origami_api_version(void);

/* The version of origami that the library belongs to, such as "0.2.0". The text is the library's and stays. */
const char *origami_version(void);

/* Opens a model. request is a JSON object. Only arch is required:
 *
 *   arch       "sm90", "sm90@h200" or "h200", as on the command line
 *   device     "h200"
 *   model      a name, or "refined" or "reference" for one of that class; default: the architecture's best
 *   kernel     kernel family; default: the model's first
 *   rung       how much the model may know: "spec", "calibrated", "compiled", "characterized"; default: the highest
 *   options    {"key": "value"}: settings of the architecture's plugin
 *   overrides  {"clock": 1.5e9} or {"clock": {"value": 1500, "unit": "MHz"}}: hardware parameters
 *   space      {"block_m": [64, 128], "num_stages": [3]}: the configurations to choose from. An axis that is left out
 *              has the model's values. The axes: block_m, block_n, block_k, num_warps, num_stages, split_k, and those
 *              that the kernel family names, whose values are strings
 *   invariant  true: only configurations whose order of sums does not depend on M. The bands of a range or a list have one
 *              order, and their prices are against all configurations
 *   live       {"name": "NVIDIA H200", "attributes": {"num_sms": 132, ...}}: the GPU of this machine as its driver
 *              describes it, in base units. It opens the device of this name, or makes one from the attributes if
 *              there is none
 *   device_file  the text of a device file: its device comes before those of the plugins, and is meant if arch is ""
 *   compiled   the compiler's report on the kernels: the text of a CSV file, as for the command line
 *   characterization  the times of a pass over the kernels: the text of a CSV file, as for the command line
 *
 * origami_list has the names. Opening takes milliseconds. */
int32_t origami_open(const char *request, origami_model *model, char *error, size_t error_size);

/* The best configuration for one problem. Answers are kept: the second call takes well below a microsecond. */
int32_t origami_select(origami_model model, const origami_problem *problem, origami_pick *pick,
                       char *error, size_t error_size);

/* The same for count problems. status[i] is what origami_select would return for problems[i]. The function returns the
 * first status that is not ORIGAMI_OK, with its text. A problem without an answer has a pick of zeros. */
int32_t origami_select_many(origami_model model, const origami_problem *problems, size_t count, origami_pick *picks,
                            int32_t *status, char *error, size_t error_size);

/* The best *count configurations for one problem, best first. *count becomes their number, which can be smaller. */
int32_t origami_rank(origami_model model, const origami_problem *problem, origami_pick *picks, size_t *count,
                     char *error, size_t error_size);

/* The same among the caller's configurations, of which everything but the predicted numbers counts: the best *count of
 * those that can be used. A group_m of 0 is the model's for the problem. */
int32_t origami_rank_among(origami_model model, const origami_problem *problem, const origami_pick *configs,
                           size_t config_count, origami_pick *picks, size_t *count, char *error, size_t error_size);

/* What `origami select --advice --regret --json` says of a problem: a JSON object with the pick, its evidence, the
 * other kernel families of the device (ways), and what is predicted to be faster (advice). text is filled like an error
 * text, and may be NULL. *length becomes the length of the whole text. */
int32_t origami_answer(origami_model model, const origami_problem *problem, char *text, size_t size, size_t *length,
                       char *error, size_t error_size);

/* What `origami compare --json` says of models and problems: a JSON array with an object per problem, whose entries are
 * in the order of the models. What is wrong with one answer is in its entry. It takes 2 to 64 models and 1 to 16384
 * problems. text is filled like an error text, and may be NULL. *length becomes the length of the whole text. */
int32_t origami_compare(const origami_model *models, size_t model_count, const origami_problem *problems, size_t count,
                        char *text, size_t size, size_t *length, char *error, size_t error_size);

/* The expected regret of the pick of a problem. */
int32_t origami_expected_regret(origami_model model, const origami_problem *problem, origami_regret *regret,
                                char *error, size_t error_size);

/* The kernel of a problem, generated in this process: kernel gets its launch and ptx its text, which is filled like an
 * error text and may be NULL. *length becomes the length of the whole text. config is a configuration to use, of which
 * everything but the predicted numbers counts, or NULL for the pick; a group_m of 0 is the model's for the problem. The
 * model has to be of a kernel family that origami generates: mma or wgmma. */
int32_t origami_generate(origami_model model, const origami_problem *problem, const origami_pick *config,
                         origami_kernel *kernel, char *ptx, size_t size, size_t *length, char *error,
                         size_t error_size);

/* Divides sizes M into bands, with one kernel each. library is a model of the vendor's library, or 0 if that is not to be
 * used. *count is the room in bands, and becomes the number of bands, which may be larger: then no band is written, and
 * the call wants more room. same gets what the kernels have in common, and may be NULL. */
int32_t origami_bands(origami_model model, origami_model library, const origami_problem *problem,
                      const origami_range *range, origami_band *bands, size_t *count, origami_same *same, char *error,
                      size_t error_size);

/* Generates the kernel of a problem as origami_generate does, compiles it for a CUDA device with the driver, and loads
 * it into the device's primary context, where it stays. Compiling takes some hundred milliseconds; the driver keeps the
 * result in its own cache on the disk. kernel may be NULL. ORIGAMI_DEVICE says that the driver or the GPU cannot, with
 * the reason. A kernel with more than 128 bytes of local memory per thread is refused so too, because it is slow. */
int32_t origami_load(origami_model model, const origami_problem *problem, const origami_pick *config, int32_t device,
                     origami_plan **plan, origami_kernel *kernel, char *error, size_t error_size);

/* Enqueues a launch: C = activation(alpha A B + beta R + bias) or activation(alpha A B + bias) + R. If the problem has
 * scales, each element of A B is multiplied by those of its row and column. It runs no Go and does not wait. Tensor maps
 * are encoded once for an address. A graph that is captured keeps the launch. The addresses are not checked; they have to
 * be as aligned as the problem says. */
int32_t origami_launch(const origami_plan *plan, const origami_call *call, char *error, size_t error_size);

/* Frees a plan. Launches in progress end normally; the kernel stays loaded for other plans. */
void origami_unload(origami_plan *plan);

/* A JSON object about the open model: arch, device, device_name, model, kernel, kernels, rung, units, clock_hz, clock_rung,
 * params, options and, if known, interval_level; rung_reason, if overrides lower the rung; ranks_only, true if the model
 * puts configurations in order and its seconds are no times. text is filled like an error text, and may be NULL.
 * *length becomes the length of the whole text, so that a caller can call again with enough memory. */
int32_t origami_describe(origami_model model, char *text, size_t size, size_t *length, char *error, size_t error_size);

/* A JSON array of the architectures that can be opened, each with id, vendor, models, kernels, options and devices. */
int32_t origami_list(char *text, size_t size, size_t *length, char *error, size_t error_size);

/* Closes a model. Calls in progress end normally. */
int32_t origami_close(origami_model model, char *error, size_t error_size);

#ifdef __cplusplus
}
#endif
#endif
