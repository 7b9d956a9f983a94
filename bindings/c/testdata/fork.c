/* Forks after liborigami was used, in every state of its runtime that a caller can reach, and asks in the child. Every
 * function must refuse there, at once, and go on in the parent. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "origami.h"

static origami_model model;
static volatile int stop;

static origami_problem problem(int64_t m) {
	return (origami_problem){.m = m, .n = 512, .k = 512, .batch = 1, .dtype = ORIGAMI_FP16};
}

static int32_t ask(int64_t m, char *error, size_t size) {
	origami_problem p = problem(m);
	origami_pick pick;
	return origami_select(model, &p, &pick, error, size);
}

/* Asks on, so that locks are held and threads run at the time of a fork. */
static void *busy(void *none) {
	for (int64_t m = 1; !stop; m++)
		ask(m, NULL, 0);
	return none;
}

/* What a child does. Returns 0 if everything is refused. */
static int child(void) {
	char error[256] = "";
	origami_problem p = problem(9999);
	origami_pick pick;
	origami_regret regret;
	origami_model opened = 7;
	size_t length = 7, count = 1;
	int32_t status;
	if (origami_api_version() != ORIGAMI_API_VERSION)
		return 10;
	if (origami_select(model, &p, &pick, error, sizeof error) != ORIGAMI_INTERNAL || pick.block_m != 0 ||
	    strstr(error, "forked") == NULL)
		return 11;
	if (origami_select(model, &p, &pick, error, 4) != ORIGAMI_INTERNAL || strcmp(error, "lib") != 0)
		return 12;
	if (origami_open("{\"arch\":\"sm90\"}", &opened, NULL, 0) != ORIGAMI_INTERNAL || opened != 0)
		return 13;
	if (origami_select_many(model, &p, 1, &pick, &status, NULL, 0) != ORIGAMI_INTERNAL)
		return 14;
	if (origami_rank(model, &p, &pick, &count, NULL, 0) != ORIGAMI_INTERNAL || count != 0)
		return 15;
	if (origami_expected_regret(model, &p, &regret, NULL, 0) != ORIGAMI_INTERNAL || regret.known != 0)
		return 16;
	if (origami_describe(model, NULL, 0, &length, NULL, 0) != ORIGAMI_INTERNAL || length != 0)
		return 17;
	if (origami_list(NULL, 0, &length, NULL, 0) != ORIGAMI_INTERNAL ||
	    origami_close(model, NULL, 0) != ORIGAMI_INTERNAL)
		return 18;
	origami_plan *plan = (origami_plan *)&p;
	origami_kernel kernel;
	length = 7;
	if (origami_generate(model, &p, NULL, &kernel, NULL, 0, &length, NULL, 0) != ORIGAMI_INTERNAL || length != 0)
		return 19;
	count = 7;
	origami_range range = {.low = 1};
	origami_same same = {.worst_m = 7};
	if (origami_bands(model, 0, &p, &range, NULL, &count, &same, NULL, 0) != ORIGAMI_INTERNAL || count != 0 ||
	    same.worst_m != 0)
		return 20;
	if (origami_load(model, &p, NULL, 0, &plan, NULL, NULL, 0) != ORIGAMI_INTERNAL || plan != NULL)
		return 21;
	count = length = 7;
	if (origami_rank_among(model, &p, &pick, 1, &pick, &count, NULL, 0) != ORIGAMI_INTERNAL || count != 0)
		return 22;
	if (origami_answer(model, &p, NULL, 0, &length, NULL, 0) != ORIGAMI_INTERNAL || length != 0)
		return 23;
	length = 7;
	if (origami_compare(&model, 1, &p, 1, NULL, 0, &length, NULL, 0) != ORIGAMI_INTERNAL || length != 0)
		return 24;
	return 0;
}

int main(void) {
	char error[256];
	if (origami_open("{\"arch\":\"sm90\"}", &model, error, sizeof error) != ORIGAMI_OK)
		return 1;
	pthread_t thread;
	if (pthread_create(&thread, NULL, busy, NULL) != 0)
		return 2;
	for (int i = 0; i < 8; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			alarm(20); /* a call that hangs */
			int result = child();
			if (result == 0 && i == 0) { /* and a fork of the fork */
				pid_t grandchild = fork();
				if (grandchild == 0)
					_exit(child());
				waitpid(grandchild, &result, 0);
			}
			_exit(result != 0);
		}
		int status;
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 3;
		if (status != 0) {
			fprintf(stderr, "child %d: %s %d\n", i, WIFSIGNALED(status) ? "signal" : "exit status",
			        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
			return 4;
		}
		if (ask(20000 + i, error, sizeof error) != ORIGAMI_OK) {
			fprintf(stderr, "the parent: %s\n", error);
			return 5;
		}
	}
	stop = 1;
	return pthread_join(thread, NULL);
}
