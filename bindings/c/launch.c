//go:build cgo

/* Launches generated kernels through the NVIDIA driver. There is no Go in this file's way, and no CUDA header: the
 * driver's interface is declared here as far as it is used.
 * Source of names, numbers and signatures: CUDA driver API reference, version 12. */
#include "launch.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __linux__
#include <dlfcn.h>
#include <pthread.h>

enum {
	CUDA_SUCCESS = 0,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
	CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
	CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
	CU_JIT_ERROR_LOG_BUFFER = 5,
	CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
	CU_STREAM_CAPTURE_MODE_RELAXED = 2,
	CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
	CU_TENSOR_MAP_SWIZZLE_128B = 3,
	CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
	CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3,
	CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
	TENSOR_MAP_BYTES = 128,
	TENSOR_MAP_ALIGN = 64
};

/* name, and what it takes. The driver exports some names with the version of their signature. */
#define FUNCTIONS(F)                                                                                                   \
	F(cuInit, cuInit, (unsigned))                                                                                  \
	F(cuDriverGetVersion, cuDriverGetVersion, (int *))                                                             \
	F(cuDeviceGet, cuDeviceGet, (int *, int))                                                                      \
	F(cuDeviceGetName, cuDeviceGetName, (char *, int, int))                                                        \
	F(cuDeviceGetAttribute, cuDeviceGetAttribute, (int *, int, int))                                               \
	F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (void **, int))                                          \
	F(cuCtxGetCurrent, cuCtxGetCurrent, (void **))                                                                 \
	F(cuCtxPushCurrent, cuCtxPushCurrent_v2, (void *))                                                             \
	F(cuCtxPopCurrent, cuCtxPopCurrent_v2, (void **))                                                              \
	F(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode, (int *))                               \
	F(cuModuleLoadDataEx, cuModuleLoadDataEx, (void **, const void *, unsigned, int *, void **))                   \
	F(cuModuleUnload, cuModuleUnload, (void *))                                                                    \
	F(cuModuleGetFunction, cuModuleGetFunction, (void **, void *, const char *))                                   \
	F(cuFuncGetAttribute, cuFuncGetAttribute, (int *, int, void *))                                                \
	F(cuFuncSetAttribute, cuFuncSetAttribute, (void *, int, int))                                                  \
	F(cuGetErrorName, cuGetErrorName, (int, const char **))                                                        \
	F(cuTensorMapEncodeTiled, cuTensorMapEncodeTiled,                                                              \
	  (void *, int, uint32_t, void *, const uint64_t *, const uint64_t *, const uint32_t *, const uint32_t *, int, \
	   int, int, int))                                                                                             \
	F(cuLaunchKernel, cuLaunchKernel,                                                                              \
	  (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))

static struct {
#define DECLARE(name, symbol, types) int(*name) types;
	FUNCTIONS(DECLARE)
#undef DECLARE
} cuda;

static const char *name_of(int result) {
	const char *name = NULL;
	return cuda.cuGetErrorName(result, &name) == CUDA_SUCCESS && name != NULL ? name : "an unknown error";
}

/* Why the driver cannot be used; empty if it can be. */
static char unusable[256] = "";
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void open_driver(void) {
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (library == NULL) {
		snprintf(unusable, sizeof unusable, "there is no NVIDIA driver: %s", dlerror());
		return;
	}
#define FIND(name, symbol, types)                                                                                      \
	*(void **)&cuda.name = dlsym(library, #symbol);                                                                \
	if (cuda.name == NULL) {                                                                                       \
		snprintf(unusable, sizeof unusable, "the NVIDIA driver lacks %s: install one for CUDA 12 or later",    \
		         #symbol);                                                                                     \
		return;                                                                                                \
	}
	FUNCTIONS(FIND)
#undef FIND
	int result = cuda.cuInit(0);
	if (result != CUDA_SUCCESS)
		snprintf(unusable, sizeof unusable, "the NVIDIA driver does not start: %s (%d)", name_of(result), result);
}

static int32_t fail(char *error, size_t size, const char *format, ...) {
	if (error != NULL && size > 0) {
		va_list list;
		va_start(list, format);
		vsnprintf(error, size, format, list);
		va_end(list);
	}
	return ORIGAMI_DEVICE;
}

static int32_t failed(char *error, size_t size, int result, int32_t device, const char *doing) {
	return fail(error, size, "CUDA device %d: %s: %s (%d)", device, doing, name_of(result), result);
}

static int32_t driver(char *error, size_t size) {
	pthread_once(&opened, open_driver);
	return unusable[0] == 0 ? ORIGAMI_OK : fail(error, size, "%s", unusable);
}

/* The primary contexts, which PyTorch and the CUDA runtime use too. They are retained once and kept. */
enum { MOST_DEVICES = 64 };
static void *contexts[MOST_DEVICES];
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

static int32_t context_of(int32_t device, void **context, char *error, size_t size) {
	int32_t status = driver(error, size);
	if (status != ORIGAMI_OK)
		return status;
	if (device < 0 || device >= MOST_DEVICES)
		return fail(error, size, "there is no CUDA device %d", device);
	pthread_mutex_lock(&contexts_lock);
	if (contexts[device] == NULL) {
		int handle, result = cuda.cuDeviceGet(&handle, device);
		if (result == CUDA_SUCCESS)
			result = cuda.cuDevicePrimaryCtxRetain(&contexts[device], handle);
		if (result != CUDA_SUCCESS) {
			contexts[device] = NULL;
			status = failed(error, size, result, device, "opening it");
		}
	}
	*context = contexts[device];
	pthread_mutex_unlock(&contexts_lock);
	return status;
}

int32_t origami_cuda_gpu(int32_t device, origami_gpu *gpu, char *error, size_t size) {
	int32_t status = driver(error, size);
	if (status != ORIGAMI_OK)
		return status;
	int handle, major = 0, minor = 0;
	int result = cuda.cuDeviceGet(&handle, device);
	memset(gpu, 0, sizeof *gpu);
	if (result == CUDA_SUCCESS)
		result = cuda.cuDeviceGetName(gpu->name, sizeof gpu->name - 1, handle);
	if (result == CUDA_SUCCESS)
		result = cuda.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle);
	if (result == CUDA_SUCCESS)
		result = cuda.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle);
	if (result == CUDA_SUCCESS)
		result = cuda.cuDriverGetVersion(&gpu->driver);
	if (result != CUDA_SUCCESS)
		return failed(error, size, result, device, "asking for its name");
	gpu->cc = 10 * major + minor;
	return ORIGAMI_OK;
}

/* Makes a device current. Other threads may be capturing a graph: what this thread does is no part of it. */
static int32_t enter(int32_t device, int *mode, char *error, size_t size) {
	void *context;
	int32_t status = context_of(device, &context, error, size);
	if (status != ORIGAMI_OK)
		return status;
	int result = cuda.cuCtxPushCurrent(context);
	if (result != CUDA_SUCCESS)
		return failed(error, size, result, device, "making it current");
	*mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	cuda.cuThreadExchangeStreamCaptureMode(mode);
	return ORIGAMI_OK;
}

static void leave(int mode) {
	void *context;
	cuda.cuThreadExchangeStreamCaptureMode(&mode);
	cuda.cuCtxPopCurrent(&context);
}

/* A few spilled registers behind the loop over K cost nothing: ptxas 12 leaves up to 16 bytes in the kernels of this
 * repository. Where accumulators are spilled, it is 896 bytes or more. */
enum { MOST_LOCAL_BYTES = 128 };

int32_t origami_cuda_load(int32_t device, const char *ptx, const char *entry, uint64_t shared_memory, void **function,
                          int *local, char *error, size_t size) {
	int mode;
	int32_t status = enter(device, &mode, error, size);
	*function = NULL;
	*local = 0;
	if (status != ORIGAMI_OK)
		return status;
	/* Not the driver's linker: it takes PTX for a part of a program, in which setmaxnreg gives no registers. */
	char log[1024] = "", doing[1100] = "loading a kernel";
	int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)}, *module = NULL;
	int result = cuda.cuModuleLoadDataEx(&module, ptx, 2, options, values);
	if (result == CUDA_SUCCESS) {
		result = cuda.cuModuleGetFunction(function, module, entry);
		if (result == CUDA_SUCCESS)
			result = cuda.cuFuncSetAttribute(*function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
			                                 (int)shared_memory);
		if (result == CUDA_SUCCESS)
			result = cuda.cuFuncGetAttribute(local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, *function);
		if (result != CUDA_SUCCESS || *local > MOST_LOCAL_BYTES) {
			cuda.cuModuleUnload(module);
			*function = NULL;
		}
	} else {
		log[strcspn(log, "\r\n")] = 0;
		snprintf(doing, sizeof doing, "compiling a kernel%s%s", log[0] != 0 ? ": " : "", log);
	}
	leave(mode);
	return result == CUDA_SUCCESS ? ORIGAMI_OK : failed(error, size, result, device, doing);
}

struct origami_plan {
	int32_t device;
	void *context, *function;
	origami_kernel kernel;
	uint64_t hash[3]; /* of the kernel's tensor maps, without their addresses */
};

/* Mixes a number into a hash (splitmix64, Steele and others, 2014). */
static uint64_t mix(uint64_t hash, uint64_t x) {
	x = (hash ^ x) + 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

int32_t origami_cuda_plan(int32_t device, void *function, const origami_kernel *kernel, origami_plan **plan,
                          char *error, size_t size) {
	void *context;
	int32_t status = context_of(device, &context, error, size);
	*plan = NULL;
	if (status != ORIGAMI_OK)
		return status;
	origami_plan *p = calloc(1, sizeof *p);
	if (p == NULL)
		return fail(error, size, "no memory for a plan of %zu bytes", sizeof *p);
	p->device = device;
	p->context = context;
	p->function = function;
	p->kernel = *kernel;
	for (uint32_t i = 0; i < kernel->map_count; i++) {
		const origami_map *m = &kernel->maps[i];
		uint64_t hash = mix(0, (uint64_t)m->type);
		for (int j = 0; j < 3; j++)
			hash = mix(mix(hash, m->sizes[j]), m->box[j]);
		p->hash[i] = mix(mix(hash, m->strides[0]), m->strides[1]);
	}
	*plan = p;
	return ORIGAMI_OK;
}

/* Tensor maps by address, shape, strides and box. They are the same on every device. An address that is used again has
 * the map that it had. */
enum { MAP_SETS = 1024, MAP_WAYS = 2 };
typedef struct {
	unsigned char bytes[TENSOR_MAP_BYTES];
	origami_map shape;
	uint64_t address; /* 0: none */
} encoded;
static encoded maps[MAP_SETS][MAP_WAYS];
static unsigned char oldest[MAP_SETS];
static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER;

static int same(const origami_map *x, const origami_map *y) {
	return x->type == y->type && memcmp(x->sizes, y->sizes, sizeof x->sizes) == 0 &&
	       memcmp(x->strides, y->strides, sizeof x->strides) == 0 && memcmp(x->box, y->box, sizeof x->box) == 0;
}

static int encode(void *to, const origami_map *shape, uint64_t hash, uint64_t address) {
	size_t set = mix(hash, address) % MAP_SETS;
	int result = CUDA_SUCCESS;
	pthread_mutex_lock(&maps_lock);
	for (int way = 0; way < MAP_WAYS; way++) {
		encoded *e = &maps[set][way];
		if (e->address == address && same(&e->shape, shape)) {
			memcpy(to, e->bytes, TENSOR_MAP_BYTES);
			goto done;
		}
	}
	static const uint32_t steps[] = {1, 1, 1};
	/* Pairs of lines are slower where rows begin within a line. */
	int lines = shape->strides[0] % 128 != 0 ? CU_TENSOR_MAP_L2_PROMOTION_L2_128B : CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
	result = cuda.cuTensorMapEncodeTiled(to, shape->type, 3, (void *)(uintptr_t)address, shape->sizes, shape->strides,
	                                     shape->box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
	                                     lines, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
	if (result == CUDA_SUCCESS) {
		encoded *e = &maps[set][oldest[set]];
		oldest[set] ^= 1;
		memcpy(e->bytes, to, TENSOR_MAP_BYTES);
		e->shape = *shape;
		e->address = address;
	}
done:
	pthread_mutex_unlock(&maps_lock);
	return result;
}

int32_t origami_launch(const origami_plan *plan, const origami_call *call, char *error, size_t size) {
	if (plan == NULL || call == NULL) {
		fail(error, size, "plan or call is NULL; pass memory for it");
		return ORIGAMI_INPUT;
	}
	if (origami_forked) {
		fail(error, size, "CUDA was started before this process was forked, and cannot be used in it");
		return ORIGAMI_INTERNAL;
	}
	const origami_kernel *k = &plan->kernel;
	uint64_t addresses[] = {call->a, call->b, call->c};
	unsigned char room[3][TENSOR_MAP_BYTES] __attribute__((aligned(TENSOR_MAP_ALIGN)));
	union {
		uint64_t bits;
		uint32_t half;
		int32_t whole;
		float real;
	} values[ORIGAMI_PARAMETERS];
	void *pointers[ORIGAMI_PARAMETERS];
	if (call->beta != 0 && !k->adds) {
		fail(error, size, "beta is %g, and the kernel does not read C; load one whose problem has adds set", call->beta);
		return ORIGAMI_INPUT;
	}
	/* A thread that has not used CUDA has no context, which a tensor map needs too. */
	void *current = NULL;
	int result, other = cuda.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != plan->context;
	if (other) {
		result = cuda.cuCtxPushCurrent(plan->context);
		if (result != CUDA_SUCCESS)
			return failed(error, size, result, plan->device, "making it current");
	}
	const char *doing = "launching a kernel";
	for (uint32_t i = 0; i < k->parameter_count; i++) {
		const origami_parameter *p = &k->parameters[i];
		float scalar = p->role == ORIGAMI_ROLE_ALPHA ? call->alpha : call->beta;
		pointers[i] = &values[i];
		switch (p->role) {
		case ORIGAMI_ROLE_MAP: {
			const origami_map *m = &k->maps[p->value];
			result = encode(room[p->value], m, plan->hash[p->value], addresses[m->matrix]);
			if (result != CUDA_SUCCESS) {
				doing = "describing a matrix";
				goto left;
			}
			pointers[i] = room[p->value];
			break;
		}
		case ORIGAMI_ROLE_A:
		case ORIGAMI_ROLE_B:
		case ORIGAMI_ROLE_C:
			values[i].bits = addresses[p->role - ORIGAMI_ROLE_A];
			break;
		case ORIGAMI_ROLE_R:
			values[i].bits = call->r != 0 ? call->r : call->c;
			break;
		case ORIGAMI_ROLE_BIAS:
			values[i].bits = call->bias;
			break;
		case ORIGAMI_ROLE_SCALE_A:
			values[i].bits = call->scale_a;
			break;
		case ORIGAMI_ROLE_SCALE_B:
			values[i].bits = call->scale_b;
			break;
		case ORIGAMI_ROLE_STEP_A:
			values[i].half = call->step_a;
			break;
		case ORIGAMI_ROLE_STEP_B:
			values[i].half = call->step_b;
			break;
		case ORIGAMI_ROLE_PARTIALS:
			values[i].bits = call->partials;
			break;
		case ORIGAMI_ROLE_COUNTERS:
			values[i].bits = call->counters;
			break;
		case ORIGAMI_ROLE_ALPHA:
		case ORIGAMI_ROLE_BETA:
			if (k->integer)
				values[i].whole = (int32_t)scalar;
			else
				values[i].real = scalar;
			break;
		default:
			if (p->bytes == 8)
				values[i].bits = p->value;
			else
				values[i].half = (uint32_t)p->value;
		}
	}
	result = cuda.cuLaunchKernel(plan->function, k->grid[0], k->grid[1], k->grid[2], k->threads, 1, 1,
	                                 (unsigned)k->shared_memory, call->stream, pointers, NULL);
left:
	if (other)
		cuda.cuCtxPopCurrent(&current);
	if (error != NULL && size > 0)
		error[0] = 0;
	return result == CUDA_SUCCESS ? ORIGAMI_OK : failed(error, size, result, plan->device, doing);
}

void origami_unload(origami_plan *plan) { free(plan); }

#else /* NVIDIA's driver is looked for on Linux alone */

static int32_t none(char *error, size_t size) {
	static const char text[] = "kernels are launched on Linux alone";
	if (error != NULL && size > 0)
		snprintf(error, size, "%s", text);
	return ORIGAMI_DEVICE;
}

int32_t origami_cuda_gpu(int32_t device, origami_gpu *gpu, char *error, size_t size) {
	(void)device, (void)gpu;
	return none(error, size);
}

int32_t origami_cuda_load(int32_t device, const char *ptx, const char *entry, uint64_t shared_memory, void **function,
                          int *local, char *error, size_t size) {
	(void)device, (void)ptx, (void)entry, (void)shared_memory, (void)function, (void)local;
	return none(error, size);
}

int32_t origami_cuda_plan(int32_t device, void *function, const origami_kernel *kernel, origami_plan **plan,
                          char *error, size_t size) {
	(void)device, (void)function, (void)kernel, (void)plan;
	return none(error, size);
}

int32_t origami_launch(const origami_plan *plan, const origami_call *call, char *error, size_t size) {
	(void)plan, (void)call;
	return none(error, size);
}

void origami_unload(origami_plan *plan) { free(plan); }
#endif
