package record

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
	for name, want := range map[string]string{
		"times.csv.gz":       "here/times.csv.gz: it is larger than 64 MiB",
		"times_again.csv.gz": "here/times_again.csv.gz: it is larger than 64 MiB",
	} {
		f := files()
		f[name] = f["times.csv.gz"]
		f[name].Data = append(gz(times), zeros...) // gzip members follow one another
		if name != "times.csv.gz" {
			delete(f, "times.csv.gz")
		}
		if d, err := Read("here", f); d != nil || diag.KindOf(err) != diag.Input || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	f := files()
	f["dataset.json"].Data = bytes.Repeat([]byte(" "), int(limit.Text)+1)
	if _, err := Read("here", f); err == nil || !strings.HasPrefix(err.Error(), "here/dataset.json: it is larger than 1 MiB") {
		t.Errorf("got %v", err)
	}
}
