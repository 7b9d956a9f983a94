//go:build cgo

/* The functions of origami.h. Each calls its namesake in Go, but not in a forked child: Go's runtime has no threads
 * there, and a call may hang before any Go code runs. */
#include <string.h>

#include "_cgo_export.h"

volatile int origami_forked;

#ifndef _WIN32
#include <pthread.h>

static void in_child(void) { origami_forked = 1; }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }
#endif

static int32_t refuse(char *error, size_t size) {
	static const char text[] = "liborigami was loaded before this process was forked, and cannot answer in it; load it "
	                           "after the fork, or start the process by exec";
	if (error != NULL && size > 0) {
		size_t n = sizeof text <= size ? sizeof text - 1 : size - 1;
		memcpy(error, text, n);
		error[n] = 0;
	}
	return ORIGAMI_INTERNAL;
}

int32_t origami_api_version(void) { return ORIGAMI_API_VERSION; }

const char *origami_version(void) { return ORIGAMI_VERSION; }

int32_t origami_open(const char *request, origami_model *model, char *error, size_t size) {
	if (origami_forked) {
		if (model != NULL)
			*model = 0;
		return refuse(error, size);
	}
	return origami_go_open((char *)request, model, error, size);
}

int32_t origami_select(origami_model model, const origami_problem *problem, origami_pick *pick, char *error,
                       size_t size) {
	if (origami_forked) {
		if (pick != NULL)
			memset(pick, 0, sizeof *pick);
		return refuse(error, size);
	}
	return origami_go_select(model, (origami_problem *)problem, pick, error, size);
}

int32_t origami_select_many(origami_model model, const origami_problem *problems, size_t count, origami_pick *picks,
                            int32_t *status, char *error, size_t size) {
	if (origami_forked)
		return refuse(error, size);
	return origami_go_select_many(model, (origami_problem *)problems, count, picks, status, error, size);
}

int32_t origami_rank(origami_model model, const origami_problem *problem, origami_pick *picks, size_t *count,
                     char *error, size_t size) {
	if (origami_forked) {
		if (count != NULL)
			*count = 0;
		return refuse(error, size);
	}
	return origami_go_rank(model, (origami_problem *)problem, picks, count, error, size);
}

int32_t origami_rank_among(origami_model model, const origami_problem *problem, const origami_pick *configs,
                           size_t config_count, origami_pick *picks, size_t *count, char *error, size_t size) {
	if (origami_forked) {
		if (count != NULL)
			*count = 0;
		return refuse(error, size);
	}
	return origami_go_rank_among(model, (origami_problem *)problem, (origami_pick *)configs, config_count, picks, count,
	                             error, size);
}

int32_t origami_answer(origami_model model, const origami_problem *problem, char *text, size_t room, size_t *length,
                       char *error, size_t size) {
	if (origami_forked) {
		if (length != NULL)
			*length = 0;
		return refuse(error, size);
	}
	return origami_go_answer(model, (origami_problem *)problem, text, room, length, error, size);
}

int32_t origami_compare(const origami_model *models, size_t model_count, const origami_problem *problems, size_t count,
                        char *text, size_t room, size_t *length, char *error, size_t size) {
	if (origami_forked) {
		if (length != NULL)
			*length = 0;
		return refuse(error, size);
	}
	return origami_go_compare((origami_model *)models, model_count, (origami_problem *)problems, count, text, room,
	                          length, error, size);
}

int32_t origami_expected_regret(origami_model model, const origami_problem *problem, origami_regret *regret,
                                char *error, size_t size) {
	if (origami_forked) {
		if (regret != NULL)
			memset(regret, 0, sizeof *regret);
		return refuse(error, size);
	}
	return origami_go_expected_regret(model, (origami_problem *)problem, regret, error, size);
}

int32_t origami_generate(origami_model model, const origami_problem *problem, const origami_pick *config,
                         origami_kernel *kernel, char *ptx, size_t room, size_t *length, char *error, size_t size) {
	if (origami_forked) {
		if (length != NULL)
			*length = 0;
		return refuse(error, size);
	}
	return origami_go_generate(model, (origami_problem *)problem, (origami_pick *)config, kernel, ptx, room, length,
	                           error, size);
}

int32_t origami_bands(origami_model model, origami_model library, const origami_problem *problem,
                      const origami_range *range, origami_band *bands, size_t *count, origami_same *same, char *error,
                      size_t size) {
	if (origami_forked) {
		if (count != NULL)
			*count = 0;
		if (same != NULL)
			memset(same, 0, sizeof *same);
		return refuse(error, size);
	}
	return origami_go_bands(model, library, (origami_problem *)problem, (origami_range *)range, bands, count, same, error,
	                        size);
}

int32_t origami_load(origami_model model, const origami_problem *problem, const origami_pick *config, int32_t device,
                     origami_plan **plan, origami_kernel *kernel, char *error, size_t size) {
	if (origami_forked) {
		if (plan != NULL)
			*plan = NULL;
		return refuse(error, size);
	}
	return origami_go_load(model, (origami_problem *)problem, (origami_pick *)config, device, plan, kernel, error,
	                       size);
}

int32_t origami_describe(origami_model model, char *text, size_t room, size_t *length, char *error, size_t size) {
	if (origami_forked) {
		if (length != NULL)
			*length = 0;
		return refuse(error, size);
	}
	return origami_go_describe(model, text, room, length, error, size);
}

int32_t origami_list(char *text, size_t room, size_t *length, char *error, size_t size) {
	if (origami_forked) {
		if (length != NULL)
			*length = 0;
		return refuse(error, size);
	}
	return origami_go_list(text, room, length, error, size);
}

int32_t origami_close(origami_model model, char *error, size_t size) {
	if (origami_forked)
		return refuse(error, size);
	return origami_go_close(model, error, size);
}
