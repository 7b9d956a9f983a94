/* Calls the library wrongly. Prints what went wrong, or "ok". */
#include <stdio.h>
#include <string.h>

#include "origami.h"

static int expect(const char *request, int32_t want, const char *text) {
	char *answer = NULL;
	int32_t status = origami_ask(request, &answer);
	int ok = status == want && answer != NULL && strstr(answer, text) != NULL && strchr(answer, '\n') == NULL;
	if (!ok)
		printf("%s: %d %s; want %d and %s\n", request == NULL ? "NULL" : request, status, answer, want, text);
	origami_free(answer);
	return ok;
}

int main(void) {
	char *answer = NULL;
	origami_plan *plan = (origami_plan *)&answer;
	int ok = 1;
	ok &= expect(NULL, ORIGAMI_INPUT, "request is NULL");
	ok &= expect("", ORIGAMI_INPUT, "not understood");
	ok &= expect("[1]", ORIGAMI_INPUT, "not understood");
	ok &= expect("{}", ORIGAMI_INPUT, "there is no question");
	ok &= expect("{\"ask\":7}", ORIGAMI_INPUT, "not understood");
	ok &= expect("{\"ask\":\"select\"}", ORIGAMI_INPUT, "no architecture is given");
	ok &= expect("{\"ask\":\"select\",\"arch\":\"h200\"}", ORIGAMI_INPUT, "are missing");
	ok &= expect("{\"ask\":\"select\",\"arch\":\"h200\",\"m\":-1,\"n\":1,\"k\":1}", ORIGAMI_INPUT, "is negative");
	ok &= expect("{\"ask\":\"select\",\"arch\":\"h200\",\"colour\":1}", ORIGAMI_INPUT, "there is no key");
	ok &= expect("{\"ask\":\"compare\",\"arch\":\"h200\",\"m\":1,\"n\":1,\"k\":1}", ORIGAMI_INPUT, "give 2 to 64 sides");
	ok &= expect("{\"ask\":\"kernel\",\"arch\":\"h200\",\"m\":64,\"n\":64,\"k\":64}", ORIGAMI_INPUT, "error");
	ok &= origami_ask("{}", NULL) == ORIGAMI_INPUT;
	ok &= origami_load("{}", 0, &plan, NULL) == ORIGAMI_INPUT;
	ok &= origami_load("{\"arch\":\"h200\",\"kernel\":\"wgmma\"}", 0, &plan, &answer) == ORIGAMI_INPUT && plan == NULL;
	origami_free(answer);
	ok &= origami_load("{}", 0, NULL, &answer) == ORIGAMI_INPUT;
	origami_free(answer);
	origami_free(NULL);
	origami_unload(NULL);
	puts(ok ? "ok" : "a call was not refused as it should be");
	return !ok;
}
