/* What launch.c has for the other files of the library. The driver, libcuda, is opened at the first call that needs it.
 * Functions fail as those of origami.h do. */
#ifndef ORIGAMI_LAUNCH_H
#define ORIGAMI_LAUNCH_H

#include "origami.h"

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
} origami_map;

#define ORIGAMI_PARAMETERS 48 /* the most that a kernel has */

/* A generated kernel and its launch for one problem. */
typedef struct {
	uint64_t shared_memory; /* dynamic, bytes */
	uint64_t counters, partials;
	uint32_t grid[3], threads; /* a CTA has threads in one dimension */
	uint32_t parameter_count, map_count;
	uint8_t adds, integer;
	origami_map maps[3];
	origami_parameter parameters[ORIGAMI_PARAMETERS];
} origami_kernel;


/* Whether this process is a fork of the one that loaded the library. */
extern volatile int origami_forked;

/* A GPU as its driver describes it. */
typedef struct {
	char name[128];
	int32_t cc;     /* compute capability, 90 for 9.0 */
	int32_t driver; /* its version, 13000 for 13.0 */
} origami_gpu;

int32_t origami_cuda_gpu(int32_t device, origami_gpu *gpu, char *error, size_t size);

/* Compiles PTX for a device and loads it into its primary context, where it stays. *local becomes the bytes of local
 * memory of a thread. With many, the kernel is slow: it is not kept, and *function is NULL. */
int32_t origami_cuda_load(int32_t device, const char *ptx, const char *entry, uint64_t shared_memory, void **function,
                          int *local, char *error, size_t size);

/* A plan of a loaded function. */
int32_t origami_cuda_plan(int32_t device, void *function, const origami_kernel *kernel, origami_plan **plan,
                          char *error, size_t size);
#endif
