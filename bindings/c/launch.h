/* What launch.c has for the other files of the library. The driver, libcuda, is opened at the first call that needs it.
 * Functions fail as those of origami.h do. */
#ifndef ORIGAMI_LAUNCH_H
#define ORIGAMI_LAUNCH_H

#include "origami.h"

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
