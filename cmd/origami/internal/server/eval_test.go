//go:build !race

// The shipped measurements are arithmetic in one goroutine, which the race detector would only slow down tenfold.

package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/plugins/nvidia"
)

// The scores of shipped measurements are answers too, and end with the time limit.
func TestEval(t *testing.T) {
	p := must.Get(nvidia.Provider())(t)
	s := serverOf(t, p, Options{})
	answered(t, s, "eval", "?arch=h200")
	const published = "?arch=h20&published=true&kernel=triton&model=refined"
	for question, want := range map[string]string{
		"?arch=h200&kernel=mma&intervals=true":    `"leave_one_out":{"interval_coverage":0.9`,
		published + "&pairs=true":                 `{"kernel":"triton","models":["pipelined"],"times":10,`,
		published + "&dtype=fp32&intervals=true":  `[{"device":"sm90@h20","model":"pipelined","dtypes":["fp32"]`,
		published + "&dtype=bfloat16&scheme=none": `"times":3,`,
	} {
		body := answered(t, s, "eval", question)
		must.That(t, strings.Contains(body, want), "eval of %s is %.300s", question, body)
	}
	w := get(s, "/api/v1/eval?arch=h200&published=true&scheme=block7")
	must.That(t, w.Code == http.StatusBadRequest &&
		strings.Contains(failure(t, w).What, "no published times"), "%d %.300s", w.Code, w.Body)
	answered(t, s, "roofline", "?arch=h200&measured=true")
	answered(t, s, "select", "?arch=h200&kernel=library&"+shape256)
	s.TimeLimit = 50 * time.Millisecond
	w = get(s, "/api/v1/eval?arch=h200&kernel=mma")
	must.That(t, w.Code == http.StatusGatewayTimeout &&
		strings.Contains(failure(t, w).What, "longer than 50ms"), "%d %.300s", w.Code, w.Body)
}
