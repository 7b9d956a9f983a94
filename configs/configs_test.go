package configs_test

import (
	"io/fs"
	"testing"

	"github.com/origami-gemm/origami/configs"
	"github.com/origami-gemm/origami/core/hw"
)

func sheets(t *testing.T) []*hw.Sheet {
	t.Helper()
	files, err := fs.Glob(configs.FS, "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no embedded device files (%v)", err)
	}
	var all []*hw.Sheet
	for _, file := range files {
		data, err := fs.ReadFile(configs.FS, file)
		if err != nil {
			t.Fatal(err)
		}
		sheet, err := hw.DecodeSheet(file, data)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		all = append(all, sheet)
	}
	return all
}

func TestEveryFileDecodes(t *testing.T) {
	for _, s := range sheets(t) {
		t.Logf("%s: %s@%s, %d derived, %d calibrated, %d atoms", s.File, s.Arch, s.Device, len(s.Derived), len(s.Calibrated), len(s.Atoms))
	}
}
