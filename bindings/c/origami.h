/* liborigami: origami's models in a process, without a plugin, for C and every language that can call C.
 *
 * origami_ask answers questions in JSON. origami_load and origami_launch run the kernels that origami generates. Every
 * function may be called from several threads at once, and the library keeps no pointers of the caller.
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

/* The version of this interface. If origami_api_version returns another number, the library is of another header. */
#define ORIGAMI_API_VERSION 5

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

/* ORIGAMI_API_VERSION of the library. */
int32_t origami_api_version(void);

/* The version of origami that the library belongs to, such as "0.2.0". The text is the library's and stays. */
const char *origami_version(void);

/* Answers a question. request is a JSON object with the key ask and the keys of that question, as the flags of the
 * command line with _ for - (docs/reference has all):
 *
 *   {"ask": "select", "arch": "h200", "m": 4096, "n": 4096, "k": 4096, "dtype": "bf16", "trans_b": true}
 *   {"ask": "select", "arch": "h200", "brief": true, "problems": [{"m": 1, "n": 64, "k": 64}, ...]}
 *   {"ask": "select", "arch": "h200", "kernel": "wgmma", "m": "1:8192", "n": 4096, "k": 4096}
 *
 *   select    the configuration to run; of several M, the bands
 *   rank      the candidates in order
 *   explain   every number behind a prediction
 *   compare   several architectures side by side, also of "sides": [{"arch": ...}, ...]
 *   kernel    the generated kernel of the pick, or of "config": {"block_m": ...}, and its launch
 *   pin       the times of compiled kernels, "kernels": [{"programs": ...}, ...], and the one to take (docs/pin.md)
 *   describe  the model, its rung, clock and parameters
 *   archs     what can be opened
 *
 * With "problems", select and compare answer a list; what is wrong with a problem of select stands in its place. Where a
 * flag names a file, the key has its text, and "candidates" may be a list of configurations. "live" is the GPU of this
 * machine as its driver describes it: {"name": "NVIDIA H200", "attributes": {"num_sms": 132, ...}}. With "brief", select
 * and rank leave out reasons, terms and other kernel families. With "own", bands leave out the vendor's library.
 *
 * A kernel has entry, ptx, config, grid, threads, shared_memory (dynamic, bytes), counters and partials (bytes of workspace,
 * aligned to 256; the counters are zero before the first launch, and each launch leaves them at zero), adds, integer,
 * parameters (role, bytes, value) and maps (matrix, type, sizes, strides, box: tensor maps of three dimensions, as
 * cuTensorMapEncodeTiled takes them, with the 128-byte swizzle and zeros outside).
 *
 * *answer becomes JSON, which origami_free frees: the answer as the command line has it with --json (docs/json.md), or,
 * with another status than ORIGAMI_OK, {"error": {"kind": ..., "what": ..., "where": ..., "fix": ...}}. Every number is
 * finite. Models are opened once, which takes milliseconds; a known pick with brief takes some 25 microseconds. */
int32_t origami_ask(const char *request, char **answer);

/* Frees an answer; NULL is none. */
void origami_free(char *answer);

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

/* Generates the kernel that {"ask": "kernel"} with the same request answers, compiles it for a CUDA device with the
 * driver, and loads it into the device's primary context, where it stays. The family has to be one that origami
 * generates: mma or wgmma. Compiling takes some hundred milliseconds; the driver keeps the result in its own cache on the
 * disk. *answer becomes the answer to that question without the text of the kernel, or the error, as of origami_ask.
 * ORIGAMI_DEVICE says that the driver or the GPU cannot, with the reason. A kernel with more than 128 bytes of local
 * memory per thread is refused so too, because it is slow. */
int32_t origami_load(const char *request, int32_t device, origami_plan **plan, char **answer);

/* Enqueues a launch: C = activation(alpha A B + beta R + bias) or activation(alpha A B + bias) + R. If the problem has
 * scales, each element of A B is multiplied by those of its row and column. It runs no Go and does not wait. Tensor maps
 * are encoded once for an address. A graph that is captured keeps the launch. If error is not
 * NULL and error_size not 0, the buffer gets one line that says what was wrong. The addresses are not checked; they have to
 * be as aligned as the problem says. */
int32_t origami_launch(const origami_plan *plan, const origami_call *call, char *error, size_t error_size);

/* Frees a plan. Launches in progress end normally; the kernel stays loaded for other plans. */
void origami_unload(origami_plan *plan);

#ifdef __cplusplus
}
#endif
#endif
