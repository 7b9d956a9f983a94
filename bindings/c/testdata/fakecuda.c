/* A libcuda.so.1 that has no GPU: it writes down what is asked of it, and fails when it is told to. The environment:
 *
 *   FAKE_FAIL   "function code": what that function returns; "cuLaunchKernel 2" is out of memory
 *   FAKE_CC     compute capability, 90 otherwise
 *   FAKE_LOCAL  bytes of local memory of a kernel
 *   FAKE_LOG    a file for a line of each call that matters
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failing(const char *name) {
	const char *fail = getenv("FAKE_FAIL");
	size_t n = strlen(name);
	return fail != NULL && strncmp(fail, name, n) == 0 && fail[n] == ' ' ? atoi(fail + n) : 0;
}

static void note(const char *text) {
	const char *path = getenv("FAKE_LOG");
	FILE *file = path != NULL ? fopen(path, "a") : NULL;
	if (file != NULL) {
		fprintf(file, "%s\n", text);
		fclose(file);
	}
}

#define FAILS(name)                                                                                                    \
	do {                                                                                                           \
		int code = failing(#name);                                                                             \
		if (code != 0)                                                                                         \
			return code;                                                                                   \
	} while (0)

static int context;
static __thread void *current;
static __thread int depth;

int cuInit(unsigned flags) {
	(void)flags;
	FAILS(cuInit);
	return 0;
}
int cuDriverGetVersion(int *version) { return *version = 13000, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, ordinal == 0 ? 0 : 101; }
int cuDeviceGetName(char *name, int size, int device) {
	(void)device;
	snprintf(name, (size_t)size, "NVIDIA H200");
	return 0;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
	int cc = getenv("FAKE_CC") != NULL ? atoi(getenv("FAKE_CC")) : 90;
	(void)device;
	static const int numbers[][2] = {{13, 1980000}, {16, 132},    {36, 3201000}, {37, 6144},
	                                 {38, 62914560}, {81, 233472}, {82, 65536},   {97, 232448}};
	*value = attribute == 75 ? cc / 10 : attribute == 76 ? cc % 10 : 0;
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (numbers[i][0] == attribute)
			*value = numbers[i][1];
	return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) {
	(void)device;
	return *bytes = 150754820096u, 0;
}
int cuDevicePrimaryCtxRetain(void **made, int device) {
	(void)device;
	FAILS(cuDevicePrimaryCtxRetain);
	note("retain");
	return *made = &context, 0;
}
int cuCtxGetCurrent(void **now) { return *now = current, 0; }
int cuCtxPushCurrent_v2(void *pushed) { return current = pushed, depth++, 0; }
int cuCtxPopCurrent_v2(void **popped) {
	*popped = current;
	if (--depth < 0)
		abort();
	current = NULL;
	return 0;
}
int cuThreadExchangeStreamCaptureMode(int *mode) {
	static __thread int now;
	int before = now;
	now = *mode;
	*mode = before;
	return 0;
}

/* A module is its PTX. */
int cuModuleLoadDataEx(void **module, const void *image, unsigned count, int *options, void **values) {
	int code = failing("cuModuleLoadDataEx");
	if (count != 2 || options[0] != 5 || options[1] != 6)
		return 1;
	if (code == 218) /* CUDA_ERROR_INVALID_PTX */
		snprintf(values[0], (size_t)(uintptr_t)values[1], "ptxas application ptx input, line 7; fatal\nmore");
	if (code != 0)
		return code;
	if (current != &context)
		return 201; /* CUDA_ERROR_INVALID_CONTEXT */
	note("load");
	return *module = strdup(image), 0;
}
int cuModuleUnload(void *module) { return free(module), note("unload"), 0; }
int cuModuleGetFunction(void **function, void *module, const char *name) {
	char entry[256];
	FAILS(cuModuleGetFunction);
	snprintf(entry, sizeof entry, ".entry %s(", name);
	return *function = module, strstr(module, entry) != NULL ? 0 : 500; /* CUDA_ERROR_NOT_FOUND */
}
int cuFuncGetAttribute(int *value, int attribute, void *function) {
	const char *bytes = getenv("FAKE_LOCAL");
	(void)function;
	FAILS(cuFuncGetAttribute);
	return *value = attribute == 3 && bytes != NULL ? atoi(bytes) : 0, 0;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
	(void)function;
	FAILS(cuFuncSetAttribute);
	return attribute == 8 && value <= 232448 ? 0 : 1;
}
int cuGetErrorName(int code, const char **name) {
	*name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : code == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR";
	return 0;
}
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *sizes,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                           int swizzle, int promotion, int fill) {
	char line[256];
	(void)steps;
	FAILS(cuTensorMapEncodeTiled);
	if (current != &context)
		return 201; /* CUDA_ERROR_INVALID_CONTEXT */
	if ((uintptr_t)map % 64 != 0 || (uintptr_t)address % 16 != 0 || rank != 3 || interleave != 0 || swizzle != 3 || fill != 0)
		return 1;
	snprintf(line, sizeof line, "encode %d %p %llu,%llu,%llu %llu,%llu %u,%u,%u %d", type, address,
	         (unsigned long long)sizes[0], (unsigned long long)sizes[1], (unsigned long long)sizes[2],
	         (unsigned long long)strides[0], (unsigned long long)strides[1], box[0], box[1], box[2], promotion);
	note(line);
	memset(map, 0, 128);
	memcpy(map, &address, sizeof address);
	return 0;
}
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
	char line[256];
	(void)extra;
	FAILS(cuLaunchKernel);
	if (current != &context)
		return 201;
	snprintf(line, sizeof line, "launch %u,%u,%u %u,%u,%u %u %p %p", x, y, z, threads, ty, tz, shared, stream,
	         *(void **)parameters[0]);
	note(line);
	return function != NULL ? 0 : 400;
}
