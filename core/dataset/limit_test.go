package dataset

import (
	"bytes"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/limit"
)

// A small file that unpacks to a large one is refused, whatever of it is read.
func TestBombs(t *testing.T) {
	zeros := gz(strings.Repeat("0", int(limit.Table)+1))
	f := files()
	f["times.csv.gz"].Data = append(gz(times), zeros...) // gzip members follow one another
	if d, err := Read("here", f); d != nil || diag.KindOf(err) != diag.Input ||
		!strings.HasPrefix(err.Error(), "here/times.csv.gz: it is larger than 64 MiB") {
		t.Errorf("got %v", err)
	}
	f = files()
	f["dataset.json"].Data = bytes.Repeat([]byte(" "), int(limit.Text)+1)
	if _, err := Read("here", f); err == nil || !strings.HasPrefix(err.Error(),
		"here/dataset.json: it is larger than 1 MiB") {
		t.Errorf("got %v", err)
	}
}
