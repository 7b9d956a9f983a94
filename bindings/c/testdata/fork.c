/* Forks after liborigami was used, in every state of its runtime that a caller can reach, and asks in the child. Every
 * function must refuse there, at once, and go on in the parent. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "origami.h"

static volatile int stop;

static int32_t ask(int m) {
	char request[160], *answer;
	snprintf(request, sizeof request, "{\"ask\":\"select\",\"arch\":\"sm90\",\"brief\":true,\"m\":%d,\"n\":512,\"k\":512}", m);
	int32_t status = origami_ask(request, &answer);
	origami_free(answer);
	return status;
}

/* Asks on, so that locks are held and threads run at the time of a fork. */
static void *busy(void *none) {
	for (int m = 1; !stop; m++)
		ask(m);
	return none;
}

/* What a child does. Returns 0 if everything is refused. */
static int child(void) {
	char *answer = NULL;
	origami_plan *plan = (origami_plan *)&answer;
	if (origami_api_version() != ORIGAMI_API_VERSION)
		return 10;
	if (origami_ask("{\"ask\":\"archs\"}", &answer) != ORIGAMI_INTERNAL || strstr(answer, "forked") == NULL)
		return 11;
	origami_free(answer);
	if (origami_load("{}", 0, &plan, &answer) != ORIGAMI_INTERNAL || plan != NULL || strstr(answer, "forked") == NULL)
		return 12;
	origami_free(answer);
	return 0;
}

int main(void) {
	pthread_t threads[4];
	if (ask(64) != ORIGAMI_OK)
		return 1;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, busy, NULL);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();
		if (pid == 0) {
			alarm(20);
			_exit(child());
		}
		int status;
		if (waitpid(pid, &status, 0) != pid || status != 0) {
			fprintf(stderr, "a child ended with %d\n", status);
			return 2;
		}
		if (ask(64 + i) != ORIGAMI_OK)
			return 3;
	}
	stop = 1;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
