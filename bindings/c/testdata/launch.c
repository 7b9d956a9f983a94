/* Loads and launches kernels on the driver that is found, which the tests replace. Prints "ok", or the error of the
 * first call that fails, with its status.
 *
 *   launch load DEVICE THREADS          the same kernel from so many threads at once
 *   launch time                         host nanoseconds of a launch, the least of many
 *   launch fork                         loads, forks, and launches in the child
 *   launch cases                        what origami_launch promises
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "origami.h"

static char error[2048];
static origami_model model;
static int32_t device;

#define ERROR error, sizeof error

static void must(int32_t status) {
	if (status != ORIGAMI_OK) {
		printf("%d %s\n", status, error);
		exit(0);
	}
}

static origami_problem layer(int64_t m) {
	return (origami_problem){.m = m, .n = 4096, .k = 4096, .batch = 1, .dtype = ORIGAMI_BF16, .trans_b = 1};
}

static void *load(void *none) {
	origami_problem p = layer(512);
	origami_plan *plan;
	char text[2048];
	(void)none;
	int32_t status = origami_load(model, &p, NULL, device, &plan, NULL, text, sizeof text);
	if (status != ORIGAMI_OK)
		return strdup(text);
	origami_unload(plan);
	return NULL;
}

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void check(int ok, const char *what) {
	if (!ok) {
		printf("%s: %s\n", what, error);
		exit(0);
	}
}

static void cases(void) {
	origami_problem p = layer(512);
	origami_plan *plan, *other;
	origami_kernel kernel, second;
	must(origami_load(model, &p, NULL, 0, &plan, &kernel, ERROR));
	check(kernel.map_count >= 2 && kernel.threads >= 256 && kernel.parameter_count > 10, "a kernel's record");
	origami_call call = {.a = 1 << 20, .b = 2 << 20, .c = 3 << 20, .counters = 4 << 20, .partials = 5 << 20, .alpha = 1,
	                     .stream = (void *)77};
	for (int i = 0; i < 3; i++)
		must(origami_launch(plan, &call, ERROR));
	call.a += 4096;
	must(origami_launch(plan, &call, ERROR));
	call.a -= 4096;
	/* the same kernel for another M */
	origami_pick pick;
	p.m = 300;
	must(origami_select(model, &p, &pick, ERROR));
	p.m = 500;
	must(origami_load(model, &p, &pick, 0, &other, &second, ERROR));
	check(strcmp(kernel.entry, second.entry) != 0 || second.maps[0].sizes[1] == 500, "another M");
	must(origami_launch(other, &call, ERROR));
	call.beta = 1;
	check(origami_launch(plan, &call, ERROR) == ORIGAMI_INPUT && strstr(error, "beta is 1") != NULL, "beta");
	check(origami_launch(plan, &call, NULL, 0) == ORIGAMI_INPUT, "beta without a text");
	check(origami_launch(NULL, &call, ERROR) == ORIGAMI_INPUT, "no plan");
	check(origami_launch(plan, NULL, ERROR) == ORIGAMI_INPUT, "no call");
	origami_unload(NULL);
	origami_unload(plan);
	origami_unload(other);
}

int main(int argc, char **argv) {
	must(origami_open("{\"arch\":\"sm90\",\"device\":\"h200\",\"kernel\":\"wgmma\"}", &model, ERROR));
	if (argc > 3 && strcmp(argv[1], "load") == 0) {
		pthread_t threads[16];
		int count = atoi(argv[3]);
		device = atoi(argv[2]);
		for (int i = 0; i < count; i++)
			pthread_create(&threads[i], NULL, load, NULL);
		for (int i = 0; i < count; i++) {
			void *text;
			pthread_join(threads[i], &text);
			if (text != NULL) {
				printf("4 %s\n", (char *)text);
				return 0;
			}
		}
	} else if (argc > 1 && strcmp(argv[1], "time") == 0) {
		origami_problem p = layer(512);
		origami_plan *plan;
		must(origami_load(model, &p, NULL, 0, &plan, NULL, ERROR));
		origami_call call = {.a = 1 << 20, .b = 2 << 20, .c = 3 << 20, .counters = 4 << 20, .partials = 5 << 20, .alpha = 1};
		double best = 1e9;
		for (int i = 0; i < 200; i++) {
			double begin = now();
			for (int j = 0; j < 1000; j++)
				origami_launch(plan, &call, ERROR);
			double each = (now() - begin) / 1000;
			best = each < best ? each : best;
		}
		printf("%.0f ns\n", best);
	} else if (argc > 1 && strcmp(argv[1], "fork") == 0) {
		origami_problem p = layer(512);
		origami_plan *plan;
		must(origami_load(model, &p, NULL, 0, &plan, NULL, ERROR));
		origami_call call = {.a = 1 << 20, .b = 2 << 20, .c = 3 << 20, .counters = 1 << 20, .partials = 1 << 20, .alpha = 1};
		pid_t pid = fork();
		if (pid == 0) {
			alarm(20);
			int refused = origami_launch(plan, &call, ERROR) == ORIGAMI_INTERNAL && strstr(error, "forked") != NULL;
			origami_plan *none = plan;
			refused &= origami_load(model, &p, NULL, 0, &none, NULL, ERROR) == ORIGAMI_INTERNAL && none == NULL;
			_exit(!refused);
		}
		int status;
		check(waitpid(pid, &status, 0) == pid && status == 0, "the child was not refused");
		must(origami_launch(plan, &call, ERROR));
	} else {
		cases();
	}
	printf("ok\n");
	return 0;
}
