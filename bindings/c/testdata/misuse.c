/* Calls liborigami with what no caller should pass: NULLs, sizes, numbers and requests. Every call must return the
 * right status, with a text if it fails, and write nothing outside of what it was given. Prints the number of cases. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "origami.h"

#define ROOM (16 << 10)
#define GUARD 64

static origami_model model;
static char buffer[ROOM + GUARD];
static int cases, failures;

/* A fresh buffer, with a pattern that tells what was written. */
static char *fresh(void) {
	memset(buffer, 0x5a, sizeof buffer);
	return buffer;
}

/* Checks a status, and that the text in a buffer of this many bytes is there only on failure. */
static void check(const char *what, int32_t got, int32_t want, size_t size) {
	cases++;
	size_t room = size < ROOM ? size : ROOM;
	int text = 1;
	if (room > 0)
		text = memchr(buffer, 0, room) != NULL && (got == ORIGAMI_OK || room == 1) == (buffer[0] == 0);
	for (size_t i = room; i < sizeof buffer; i++)
		text &= buffer[i] == 0x5a;
	if (got != want || !text) {
		failures++;
		fprintf(stderr, "%s: status %d, want %d; text %s: %.200s\n", what, got, want, text ? "right" : "wrong",
		        room > 0 ? buffer : "");
	}
}

static const size_t sizes[] = {0,          1,         2,             7,           100,          ROOM,
                               UINT32_MAX, INT64_MAX, SIZE_MAX / 2,  SIZE_MAX - 7, SIZE_MAX - 1, SIZE_MAX};

/* Every function with every size of the error text, on success and on failure. */
static void error_sizes(const origami_problem *good, const origami_problem *bad) {
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t size = sizes[i], length, count;
		origami_pick pick;
		origami_regret regret;
		origami_model opened;
		int32_t status;
		check("open", origami_open("{\"arch\":\"sm89\"}", &opened, fresh(), size), ORIGAMI_OK, size);
		check("close", origami_close(opened, fresh(), size), ORIGAMI_OK, size);
		check("close again", origami_close(opened, fresh(), size), ORIGAMI_INPUT, size);
		check("open fails", origami_open("{", &opened, fresh(), size), ORIGAMI_INPUT, size);
		check("select", origami_select(model, good, &pick, fresh(), size), ORIGAMI_OK, size);
		check("select fails", origami_select(model, bad, &pick, fresh(), size), ORIGAMI_INPUT, size);
		check("many", origami_select_many(model, good, 1, &pick, &status, fresh(), size), ORIGAMI_OK, size);
		check("many fails", origami_select_many(model, bad, 1, &pick, &status, fresh(), size), ORIGAMI_INPUT, size);
		count = 1;
		check("rank", origami_rank(model, good, &pick, &count, fresh(), size), ORIGAMI_OK, size);
		count = 1;
		check("rank fails", origami_rank(model, bad, &pick, &count, fresh(), size), ORIGAMI_INPUT, size);
		check("regret", origami_expected_regret(model, good, &regret, fresh(), size), ORIGAMI_OK, size);
		check("regret fails", origami_expected_regret(model, bad, &regret, fresh(), size), ORIGAMI_INPUT, size);
		check("describe", origami_describe(model, NULL, 0, &length, fresh(), size), ORIGAMI_OK, size);
		check("describe fails", origami_describe(0, NULL, 0, &length, fresh(), size), ORIGAMI_INPUT, size);
		check("list", origami_list(NULL, 0, &length, fresh(), size), ORIGAMI_OK, size);
	}
}

/* Sizes of answers and counts of problems. */
static void answer_sizes(const origami_problem *good) {
	size_t length = 0;
	check("list", origami_list(NULL, 0, &length, fresh(), ROOM), ORIGAMI_OK, ROOM);
	char *text = malloc(length + 1);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t size = sizes[i];
		if (size > 100 && size <= length)
			continue; /* the text would not fit into what it says */
		check("list into", origami_list(text, size, &length, fresh(), ROOM), ORIGAMI_OK, ROOM);
		if (size > 0 && memchr(text, 0, length + 1) == NULL)
			check("list is not ended", ORIGAMI_INTERNAL, ORIGAMI_OK, ROOM);
	}
	free(text);
	origami_pick pick;
	int32_t status;
	size_t counts[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / sizeof(origami_pick) + 1, (size_t)1 << 60};
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
		check("many of too many", origami_select_many(model, good, counts[i], &pick, &status, fresh(), ROOM),
		      ORIGAMI_INPUT, ROOM);
	check("many of none", origami_select_many(model, NULL, 0, NULL, NULL, fresh(), ROOM), ORIGAMI_OK, ROOM);
	size_t count = SIZE_MAX;
	origami_pick *all = malloc(sizeof *all << 14); /* more than the space has */
	check("rank all", origami_rank(model, good, all, &count, fresh(), ROOM), ORIGAMI_OK, ROOM);
	if (count == 0 || count >= 1 << 14)
		check("rank all counts", ORIGAMI_INTERNAL, ORIGAMI_OK, ROOM);
	free(all);
}

static void nulls(const origami_problem *good) {
	origami_pick pick;
	origami_regret regret;
	origami_model opened;
	int32_t status;
	size_t count = 1;
	fresh();
	check("open NULL", origami_open(NULL, &opened, buffer, ROOM), ORIGAMI_INPUT, ROOM);
	check("open to NULL", origami_open("{}", NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("no text", origami_open("{}", &opened, NULL, SIZE_MAX), ORIGAMI_INPUT, ROOM);
	check("select NULL", origami_select(model, NULL, &pick, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("select to NULL", origami_select(model, good, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("many NULL", origami_select_many(model, NULL, 1, &pick, &status, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("many to NULL", origami_select_many(model, good, 1, NULL, &status, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("many without status", origami_select_many(model, good, 1, &pick, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("rank NULL", origami_rank(model, NULL, &pick, &count, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	count = 1;
	check("rank to NULL", origami_rank(model, good, NULL, &count, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("rank without count", origami_rank(model, good, &pick, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("regret NULL", origami_expected_regret(model, NULL, &regret, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("regret to NULL", origami_expected_regret(model, good, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("describe without length", origami_describe(model, NULL, 0, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("list without length", origami_list(NULL, 0, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	origami_kernel kernel;
	origami_plan *plan;
	size_t length;
	check("generate NULL", origami_generate(model, NULL, NULL, &kernel, NULL, 0, &length, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("generate to NULL", origami_generate(model, good, NULL, NULL, NULL, 0, &length, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("generate of a family that origami does not", /* triton */
	      origami_generate(model, good, NULL, &kernel, NULL, 0, &length, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("load NULL", origami_load(model, NULL, NULL, 0, &plan, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("load to NULL", origami_load(model, good, NULL, 0, NULL, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	count = 1;
	origami_range range = {.low = 1}, zero = {.low = 0}, one = {.low = good->m}, lost = {.count = 2},
	              axis = {.low = good->m, .same = "block_k,blockk"};
	check("bands NULL", origami_bands(model, 0, NULL, &range, NULL, &count, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("bands without count", origami_bands(model, 0, good, &range, NULL, NULL, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("bands of no range", origami_bands(model, 0, good, NULL, NULL, &count, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("bands of no list", origami_bands(model, 0, good, &lost, NULL, &count, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	count = 1;
	check("bands to NULL", origami_bands(model, 0, good, &range, NULL, &count, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	count = 0;
	check("bands from 0", origami_bands(model, 0, good, &zero, NULL, &count, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("bands beside nothing", origami_bands(model, model + 1000, good, &range, NULL, &count, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("bands of an unknown axis", origami_bands(model, 0, good, &axis, NULL, &count, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("bands into nothing", origami_bands(model, 0, good, &one, NULL, &count, NULL, fresh(), ROOM), ORIGAMI_OK, ROOM);
	if (count != 1)
		check("one M has one band", ORIGAMI_INTERNAL, ORIGAMI_OK, ROOM);
	origami_pick tile = {.block_m = 128, .block_n = 128, .block_k = 64, .num_warps = 8, .num_stages = 3, .split_k = 1};
	origami_pick none = {0}, among[2];
	count = 2;
	check("among one", origami_rank_among(model, good, &tile, 1, among, &count, fresh(), ROOM), ORIGAMI_OK, ROOM);
	if (count != 1 || among[0].block_m != 128 || !(among[0].seconds > 0))
		check("the one of one", ORIGAMI_INTERNAL, ORIGAMI_OK, ROOM);
	check("among no", origami_rank_among(model, good, &tile, 0, among, &count, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	count = 2;
	check("among too many",
	      origami_rank_among(model, good, &tile, SIZE_MAX, among, &count, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	count = 2;
	check("among zeros",
	      origami_rank_among(model, good, &none, 1, among, &count, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	count = 2;
	check("among NULL",
	      origami_rank_among(model, good, NULL, 1, among, &count, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	count = 2;
	check("among to NULL",
	      origami_rank_among(model, good, &tile, 1, NULL, &count, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("among without count",
	      origami_rank_among(model, good, &tile, 1, among, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("answer", origami_answer(model, good, NULL, 0, &length, fresh(), ROOM), ORIGAMI_OK, ROOM);
	check("answer NULL", origami_answer(model, NULL, NULL, 0, &length, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("answer without length", origami_answer(model, good, NULL, 0, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("answer nowhere", origami_answer(0, good, NULL, 0, &length, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	origami_model both[] = {model, model}, closed[] = {model, 0};
	check("compare", origami_compare(both, 2, good, 1, NULL, 0, &length, fresh(), ROOM), ORIGAMI_OK, ROOM);
	check("compare one", origami_compare(both, 1, good, 1, NULL, 0, &length, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("compare too many",
	      origami_compare(both, SIZE_MAX, good, 1, NULL, 0, &length, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("compare about nothing",
	      origami_compare(both, 2, good, 0, NULL, 0, &length, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("compare NULL", origami_compare(NULL, 2, good, 1, NULL, 0, &length, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("compare about NULL",
	      origami_compare(both, 2, NULL, 1, NULL, 0, &length, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("compare without length",
	      origami_compare(both, 2, good, 1, NULL, 0, NULL, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	check("compare with none",
	      origami_compare(closed, 2, good, 1, NULL, 0, &length, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	origami_model handles[] = {0, model + 1000, UINT64_MAX};
	for (size_t i = 0; i < 3; i++) {
		check("select nowhere", origami_select(handles[i], good, &pick, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
		check("close nothing", origami_close(handles[i], fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	}
}

static void numbers(const origami_problem *good) {
	const int64_t values[] = {0, -1, INT64_MIN, INT64_MAX, INT64_MAX / 2, (int64_t)1 << 62};
	for (size_t i = 0; i < 4 * sizeof values / sizeof *values; i++) {
		origami_problem p = *good;
		origami_pick pick;
		*(i % 4 == 0 ? &p.m : i % 4 == 1 ? &p.n : i % 4 == 2 ? &p.k : &p.batch) = values[i / 4];
		check("a size", origami_select(model, &p, &pick, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	}
	const int32_t types[] = {0, -1, 99, INT32_MIN, INT32_MAX};
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		origami_problem p = *good;
		origami_pick pick;
		p.dtype = types[i];
		check("a dtype", origami_select(model, &p, &pick, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	}
	for (size_t i = 1; i < sizeof types / sizeof *types; i++) { /* 0 is the default */
		origami_problem p = *good;
		origami_pick pick;
		p.out_dtype = types[i];
		check("an out_dtype", origami_select(model, &p, &pick, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	}
	for (size_t i = 0; i < 3 * (sizeof values / sizeof *values - 1); i++) {
		origami_problem p = *good;
		origami_pick pick;
		*(i % 3 == 0 ? &p.lda : i % 3 == 1 ? &p.ldb : &p.ldc) = values[1 + i / 3];
		check("a leading dimension", origami_select(model, &p, &pick, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	}
	const int64_t groups[] = {500, 12, -1, INT64_MAX};
	const struct { const int64_t *groups; uint64_t count; int32_t want; } lists[] = {
	    {groups, 0, ORIGAMI_OK}, {NULL, 0, ORIGAMI_OK}, {groups, 1, ORIGAMI_INPUT}, {groups, 2, ORIGAMI_OK},
	    {groups, 3, ORIGAMI_INPUT}, {groups, 4, ORIGAMI_INPUT}, {NULL, 2, ORIGAMI_INPUT}, {groups, 1025, ORIGAMI_INPUT},
	    {groups, UINT64_MAX, ORIGAMI_INPUT}, {groups, 1ull << 61, ORIGAMI_INPUT}};
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		origami_problem p = *good;
		origami_pick pick;
		p.groups = lists[i].groups;
		p.group_count = lists[i].count;
		check("groups", origami_select(model, &p, &pick, fresh(), ROOM), lists[i].want, ROOM);
	}
	for (int i = 0; i < 256; i++) {
		origami_problem p = *good;
		origami_pick pick;
		p.align_a = p.align_b = p.align_c = (uint8_t)i;
		/* A power of two up to 16, and no less than an element. 0 is the default. */
		int good_one = i <= 16 && i != 1 && (i & (i - 1)) == 0;
		check("an alignment", origami_select(model, &p, &pick, fresh(), ROOM), good_one ? ORIGAMI_OK : ORIGAMI_INPUT, ROOM);
	}
}

/* Requests that cannot be answered, and overrides that lead to infinite numbers: never ORIGAMI_OK with one. */
static void requests(const origami_problem *good) {
	const char *refused[] = {"", "null", "[]", "{\"arch\":7}", "{\"arch\":\"sm90\"}x", "{\"arch\":\"\x1b[2J\"}",
	                         "{\"arch\":\"sm90\",\"space\":{\"block_m\":[-1]}}x", "{\"arch\":\"sm90\",\"rung\":\"x\"}"};
	origami_model opened;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		check(refused[i], origami_open(refused[i], &opened, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	for (char *c = fresh(), *end = c + ROOM; c < end; c++)
		*c = c + 1 == end ? 0 : '[';
	char *deep = malloc(ROOM);
	memcpy(deep, buffer, ROOM);
	check("deep", origami_open(deep, &opened, fresh(), ROOM), ORIGAMI_INPUT, ROOM);
	free(deep);

	const char *clocks[] = {"1e-308", "5e-324", "1e-300", "1e300", "1.7e308"};
	for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
		char request[100];
		snprintf(request, sizeof request, "{\"arch\":\"sm89\",\"overrides\":{\"clock\":%s}}", clocks[i]);
		if (origami_open(request, &opened, fresh(), ROOM) != ORIGAMI_OK) {
			cases++;
			continue;
		}
		origami_pick pick;
		int32_t status = origami_select(opened, good, &pick, fresh(), ROOM);
		int finite = isfinite(pick.cycles) && isfinite(pick.seconds) && isfinite(pick.low) && isfinite(pick.high);
		check(request, status == ORIGAMI_OK && !finite ? ORIGAMI_OK : status,
		      status == ORIGAMI_OK && finite ? ORIGAMI_OK : ORIGAMI_PLUGIN, ROOM);
	}
}

int main(void) {
	origami_problem good = {.m = 512, .n = 512, .k = 512, .batch = 1, .dtype = ORIGAMI_FP16}, bad = good;
	bad.k = 0;
	if (origami_open("{\"arch\":\"sm90\"}", &model, buffer, ROOM) != ORIGAMI_OK) {
		fprintf(stderr, "open: %s\n", buffer);
		return 1;
	}
	error_sizes(&good, &bad);
	answer_sizes(&good);
	nulls(&good);
	numbers(&good);
	requests(&good);
	printf("%d\n", cases);
	return failures > 0;
}
