package data_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/origami-gemm/origami/internal/testing/must"
)

// recorded are the folders of measurements that are modules by themselves: the command's module lacks their 9 MB.
var recorded = []string{"grids", "h200-triton-executor", "h200-wgmma", "sweeps"}

// The recorded measurements are those that scores and fits rest on. SHA256SUMS is as `sha256sum -c` reads it.
func TestRecordedMeasurements(t *testing.T) {
	if _, err := os.Stat(recorded[0]); os.IsNotExist(err) {
		t.Skip("the module of the command does not have them")
	}
	var sums bytes.Buffer
	for _, folder := range recorded {
		must.Do(t, fs.WalkDir(os.DirFS("."), folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() == "go.mod" {
				return err
			}
			text, err := os.ReadFile(name)
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(text), name)
			return err
		}))
		if _, err := os.Stat(folder + "/go.mod"); err != nil {
			t.Errorf("%s is no module: %v", folder, err)
		}
	}
	must.File(t, "SHA256SUMS", sums.String(), *update)
}
