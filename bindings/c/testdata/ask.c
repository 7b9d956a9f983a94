/* Answers the requests of the standard input, one a line, with the status and the answer on a line. With an argument it
 * asks each so often, and prints the microseconds of the fastest call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "origami.h"

static double now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return 1e6 * (double)t.tv_sec + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
	static char line[1 << 22];
	int times = argc > 1 ? atoi(argv[1]) : 0;
	if (origami_api_version() != ORIGAMI_API_VERSION || strlen(origami_version()) == 0)
		return 1;
	while (fgets(line, sizeof line, stdin) != NULL) {
		char *answer = NULL;
		line[strcspn(line, "\n")] = 0;
		int32_t status = origami_ask(line, &answer);
		printf("%d %s\n", status, answer);
		origami_free(answer);
		double best = 1e12;
		for (int i = 0; i < times; i++) {
			double begin = now();
			origami_ask(line, &answer);
			double took = now() - begin;
			origami_free(answer);
			best = took < best ? took : best;
		}
		if (times > 0)
			printf("%.1f us\n", best);
	}
	return 0;
}
