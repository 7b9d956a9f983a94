//go:build cgo

/* The functions of origami.h. Each calls its namesake in Go, but not in a forked child: Go's runtime has no threads
 * there, and a call may hang before any Go code runs. */
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"

volatile int origami_forked;

#ifndef _WIN32
#include <pthread.h>

static void in_child(void) { origami_forked = 1; }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }
#endif

static int32_t refuse(char **answer) {
	static const char text[] =
	        "{\"error\":{\"kind\":\"internal\",\"what\":\"liborigami was loaded before this process was forked, and "
	        "cannot answer in it\",\"fix\":\"load it after the fork, or start the process by exec\"}}";
	if (answer != NULL) {
		*answer = malloc(sizeof text);
		if (*answer != NULL)
			memcpy(*answer, text, sizeof text);
	}
	return ORIGAMI_INTERNAL;
}

int32_t origami_api_version(void) { return ORIGAMI_API_VERSION; }

const char *origami_version(void) { return ORIGAMI_VERSION; }

int32_t origami_ask(const char *request, char **answer) {
	return origami_forked ? refuse(answer) : origami_go_ask((char *)request, answer);
}

int32_t origami_load(const char *request, int32_t device, origami_plan **plan, char **answer) {
	if (origami_forked && plan != NULL)
		*plan = NULL;
	return origami_forked ? refuse(answer) : origami_go_load((char *)request, device, plan, answer);
}

void origami_free(char *answer) { free(answer); }
