/* Asks liborigami from C, in every way that origami.h has, and prints what origami_select answers, a line per problem
 * of standard input ("m n k batch trans_a trans_b dtype out lda ldb ldc align_a align_b align_c", the number of groups, and
 * the rows of each). An answer that differs from it, or a request that is not refused as origami.h says, ends the
 * program.
 *
 *   ask REQUEST RANKED < problems        RANKED: how many of the ranking to print behind each pick
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "origami.h"

#define MANY 256
#define THREADS 4

static char error[512];
static origami_model model;
static origami_problem problems[MANY];
static origami_pick picks[MANY];
static size_t count;

#define ERROR error, sizeof error

static void must(int ok, const char *what) {
	if (!ok) {
		fprintf(stderr, "%s: %s\n", what, error);
		exit(1);
	}
}

static void print(const origami_pick *p) {
	printf("%d %d %d %d %d %d %d %d %d %d %a %a %a %a\n", p->block_m, p->block_n, p->block_k, p->group_m, p->num_warps,
	       p->num_stages, p->split_k, p->xcds, p->chunk, p->bound, p->cycles, p->seconds, p->low, p->high);
}

/* Several threads ask the same at once, each in another order. */
static void *ask_all(void *from) {
	for (size_t i = 0; i < 20 * count; i++) {
		size_t at = (i * 7 + (size_t)from) % count;
		origami_pick pick;
		char text[128];
		if (origami_select(model, &problems[at], &pick, text, sizeof text) != ORIGAMI_OK ||
		    memcmp(&pick, &picks[at], sizeof pick) != 0)
			return "a thread got another answer";
	}
	return NULL;
}

int main(int argc, char **argv) {
	must(argc == 3, "usage");
	must(origami_api_version() == ORIGAMI_API_VERSION, "version");
	must(strcmp(origami_version(), ORIGAMI_VERSION) == 0, "release");
	must(origami_open(argv[1], &model, ERROR) == ORIGAMI_OK && error[0] == 0 && model != 0, "open");

	int64_t v[15];
	size_t got = 0;
	static int64_t groups[MANY][MANY];
	while (scanf("%" SCNd64, &v[got]) == 1) {
		if (++got < sizeof v / sizeof *v)
			continue;
		must(count < MANY && v[14] < MANY, "too many problems or groups");
		for (int64_t i = 0; i < v[14]; i++)
			must(scanf("%" SCNd64, &groups[count][i]) == 1, "fewer groups than announced");
		problems[count] = (origami_problem){
		    .m = v[0], .n = v[1], .k = v[2], .batch = v[3], .trans_a = (uint8_t)v[4], .trans_b = (uint8_t)v[5],
		    .dtype = (int32_t)v[6], .out_dtype = (int32_t)v[7], .lda = v[8], .ldb = v[9], .ldc = v[10],
		    .align_a = (uint8_t)v[11], .align_b = (uint8_t)v[12], .align_c = (uint8_t)v[13],
		    .groups = groups[count], .group_count = (uint64_t)v[14]};
		count++;
		got = 0;
	}
	must(count > 0, "no problems");

	size_t top = (size_t)atoi(argv[2]);
	origami_pick *ranking = calloc(top + 1, sizeof *ranking);
	for (size_t i = 0; i < count; i++) {
		must(origami_select(model, &problems[i], &picks[i], ERROR) == ORIGAMI_OK, "select");
		print(&picks[i]);
		size_t ranked = top;
		must(origami_rank(model, &problems[i], ranking, &ranked, ERROR) == ORIGAMI_OK && ranked == top, "rank");
		must(memcmp(&ranking[0], &picks[i], sizeof *ranking) == 0, "the first of the ranking is not the pick");
		for (size_t j = 0; j < ranked; j++)
			print(&ranking[j]);
		origami_regret regret;
		must(origami_expected_regret(model, &problems[i], &regret, ERROR) == ORIGAMI_OK, "expected regret");
		printf("%d %a %d\n", regret.known, regret.expected, regret.worth_measuring);
	}

	/* Many at once, of which one cannot be answered. */
	static origami_problem mixed[MANY + 1];
	static origami_pick answers[MANY + 1];
	static int32_t status[MANY + 1];
	memcpy(mixed, problems, sizeof problems);
	mixed[count] = problems[0];
	mixed[count].k = 0;
	must(origami_select_many(model, mixed, count, answers, status, ERROR) == ORIGAMI_OK, "select_many");
	must(memcmp(answers, picks, count * sizeof *picks) == 0, "select_many has other answers");
	must(origami_select_many(model, mixed, count + 1, answers, status, ERROR) == ORIGAMI_INPUT &&
	         status[count] == ORIGAMI_INPUT && answers[count].block_m == 0 && status[0] == ORIGAMI_OK &&
	         strstr(error, "k is missing or zero"), "a bad problem among many");
	must(memcmp(answers, picks, count * sizeof *picks) == 0, "a bad problem spoils the others");

	pthread_t threads[THREADS];
	for (size_t i = 0; i < THREADS; i++)
		must(pthread_create(&threads[i], NULL, ask_all, (void *)i) == 0, "pthread_create");
	for (size_t i = 0; i < THREADS; i++) {
		void *result;
		must(pthread_join(threads[i], &result) == 0 && result == NULL, "threads");
	}

	/* Refused requests, with an error text that is cut to the buffer. */
	origami_pick pick;
	origami_model none;
	origami_problem bad = problems[0];
	char small[8];
	must(origami_open("{\"arch\":\"sm1\"}", &none, small, sizeof small) == ORIGAMI_INPUT &&
	         strlen(small) == sizeof small - 1 && none == 0, "an unknown architecture");
	must(origami_open("{\"arch\":\"sm90\",\"kernels\":\"mma\"}", &none, NULL, 0) == ORIGAMI_INPUT, "an unknown key");
	must(origami_open(NULL, &none, ERROR) == ORIGAMI_INPUT, "no request to open");
	must(origami_open(argv[1], NULL, ERROR) == ORIGAMI_INPUT, "no room for the opened model");
	must(origami_select(model, NULL, &pick, ERROR) == ORIGAMI_INPUT, "no problem to select");
	must(origami_select(model, &bad, NULL, ERROR) == ORIGAMI_INPUT, "no room for the pick");
	bad.trans_a = 2;
	must(origami_select(model, &bad, &pick, ERROR) == ORIGAMI_INPUT && pick.block_m == 0, "trans_a of 2");
	bad = problems[0];
	bad.dtype = ORIGAMI_INT32;
	must(origami_select(model, &bad, &pick, ERROR) == ORIGAMI_INPUT, "an unknown dtype");
	bad = problems[0];
	bad.out_dtype = ORIGAMI_INT32;
	must(origami_select(model, &bad, &pick, ERROR) == ORIGAMI_INPUT && strstr(error, "int32 results"), "an out_dtype");
	bad = problems[0];
	bad.lda = 1;
	must(origami_select(model, &bad, &pick, ERROR) == ORIGAMI_INPUT && strstr(error, "lda is 1, and"),
	     "a leading dimension");
	bad = problems[0];
	bad.align_b = 3;
	must(origami_select(model, &bad, &pick, ERROR) == ORIGAMI_INPUT && strstr(error, "align_b is 3"), "an alignment");
	bad = problems[0];
	bad.adds = 3;
	must(origami_select(model, &bad, &pick, ERROR) == ORIGAMI_INPUT, "adds is nothing that can be added");
	bad = problems[0];
	bad.m = INT64_MIN;
	must(origami_select(model, &bad, &pick, ERROR) == ORIGAMI_INPUT, "a negative size");
	must(strstr(error, "m is negative") != NULL, "the text about a negative size");
	bad.m = INT64_MAX;
	must(origami_select(model, &bad, &pick, ERROR) == ORIGAMI_INPUT, "a size that overflows");

	/* A second call with enough memory gets the whole text. */
	size_t length, again;
	must(origami_describe(model, NULL, 0, &length, ERROR) == ORIGAMI_OK && length > 100, "describe");
	char *text = malloc(length + 1);
	must(origami_describe(model, text, length + 1, &again, ERROR) == ORIGAMI_OK && again == length &&
	         strlen(text) == length, "describe again");
	must(origami_list(small, sizeof small, &length, ERROR) == ORIGAMI_OK && length > 100 &&
	         strlen(small) == sizeof small - 1, "list");

	must(origami_close(model, ERROR) == ORIGAMI_OK, "close");
	must(origami_close(model, ERROR) == ORIGAMI_INPUT, "closing a closed model");
	must(origami_select(model, &problems[0], &pick, ERROR) == ORIGAMI_INPUT, "asking a closed model");
	free(text);
	free(ranking);
	return 0;
}
