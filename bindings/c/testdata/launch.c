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

static char error[16384];
static int32_t device;

#define ERROR error, sizeof error

/* layer is the request for a layer's kernel. */
static const char *layer(int m) {
	static _Thread_local char request[400];
	snprintf(request, sizeof request,
	         "{\"arch\":\"h200\",\"kernel\":\"wgmma\",\"dtype\":\"bf16\",\"trans_b\":true,\"m\":%d,\"n\":4096,\"k\":4096}", m);
	return request;
}

static int32_t load_into(int m, int32_t on, origami_plan **plan, char *text, size_t size) {
	char *answer = NULL;
	int32_t status = origami_load(layer(m), on, plan, &answer);
	snprintf(text, size, "%s", answer == NULL ? "" : answer);
	origami_free(answer);
	return status;
}

static void must(int32_t status) {
	if (status != ORIGAMI_OK) {
		printf("%d %s\n", status, error);
		exit(0);
	}
}

static void *load(void *none) {
	origami_plan *plan;
	char text[8192];
	(void)none;
	int32_t status = load_into(512, device, &plan, text, sizeof text);
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
	origami_plan *plan, *other;
	must(load_into(512, 0, &plan, ERROR));
	check(strstr(error, "\"threads\":") != NULL && strstr(error, "\"maps\":[{") != NULL && strstr(error, "ptx") == NULL,
	      "a kernel's record");
	origami_call call = {.a = 1 << 20, .b = 2 << 20, .c = 3 << 20, .counters = 4 << 20, .partials = 5 << 20, .alpha = 1,
	                     .stream = (void *)77};
	for (int i = 0; i < 3; i++)
		must(origami_launch(plan, &call, ERROR));
	call.a += 4096;
	must(origami_launch(plan, &call, ERROR));
	call.a -= 4096;
	must(load_into(500, 0, &other, ERROR)); /* another M */
	check(strstr(error, "500") != NULL, "another M");
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
		origami_plan *plan;
		must(load_into(512, 0, &plan, ERROR));
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
		origami_plan *plan;
		must(load_into(512, 0, &plan, ERROR));
		origami_call call = {.a = 1 << 20, .b = 2 << 20, .c = 3 << 20, .counters = 1 << 20, .partials = 1 << 20, .alpha = 1};
		pid_t pid = fork();
		if (pid == 0) {
			alarm(20);
			int refused = origami_launch(plan, &call, ERROR) == ORIGAMI_INTERNAL && strstr(error, "forked") != NULL;
			origami_plan *none = plan;
			refused &= load_into(512, 0, &none, ERROR) == ORIGAMI_INTERNAL && none == NULL;
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
