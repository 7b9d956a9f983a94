//go:build !race

// The shipped measurements are arithmetic in one goroutine, which the race detector would only slow down tenfold.

package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/origami-gemm/origami/plugins/nvidia"
)

// The scores of shipped measurements are as the description says, and end with the time limit.
func TestEvalIsDescribed(t *testing.T) {
	p, err := nvidia.Provider()
	if err != nil {
		t.Fatal(err)
	}
	s := serverOf(t, p, Options{})
	described(t, s, "eval", "?arch=h200")
	described(t, s, "roofline", "?arch=h200&measured=true")
	described(t, s, "select", "?arch=h200&kernel=library&"+shape256)
	// A page has them where they are asked for.
	for question, want := range map[string]string{"": "Ask with “Show measurements”", "&measured=true": "Speed of the pick"} {
		if page := get(s, "/?arch=h200&"+shape256+question).Body.String(); !strings.Contains(page, want) {
			t.Errorf("the page%s does not say %q", question, want)
		}
	}
	s.TimeLimit = 50 * time.Millisecond
	if w := get(s, "/api/v1/eval?arch=h200&kernel=mma"); w.Code != http.StatusGatewayTimeout ||
		!strings.Contains(failure(t, w).What, "longer than 50ms") {
		t.Errorf("%d %.300s", w.Code, w.Body)
	}
}
