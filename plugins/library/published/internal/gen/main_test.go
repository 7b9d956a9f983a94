package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/columns"
	"github.com/origami-gemm/origami/internal/testing/must"
)

const folder = "../.." // of the package

// The shipped times are those that the tables give. They take a while: ORIGAMI_TEST_ALL=1 draws them.
func TestTimesAreDrawn(t *testing.T) {
	if os.Getenv("ORIGAMI_TEST_ALL") != "1" {
		t.Skip("ORIGAMI_TEST_ALL=1 draws them")
	}
	want := must.Get(build(folder, false))(t)
	if got, err := os.ReadFile(filepath.Join(folder, "times.csv.cols")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("times.csv.cols is not what the tables give (%v): run go generate ./plugins/library/published", err)
	}
}

// Each time has a series and sizes. A row without a series is left out, the fastest of one problem stays, and one shape
// in five of a large source.
func TestBuild(t *testing.T) {
	build := func(rows string) (string, error) {
		dir := t.TempDir()
		var table bytes.Buffer
		rows = "series,device,m,n,k,time_us,time_us_min,time_us_max,figures\n" + rows
		must.Do(t, columns.Write(&table, []byte(rows)))
		for name, text := range map[string][]byte{"tables/new.csv.cols": table.Bytes(),
			"series.csv": []byte("series,source\n0,neusight\n1,vidur\n")} {
			path := filepath.Join(dir, name)
			must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
			must.Do(t, os.WriteFile(path, text, 0o600))
		}
		file, err := build(dir, false)
		if err != nil {
			return "", err
		}
		text := must.Get(columns.NewReader(bytes.NewReader(file), "times", ""))(t)
		var out bytes.Buffer
		_, err = out.ReadFrom(text)
		return out.String(), err
	}
	got, err := build("0,T4,64,64,64,9.51234,9,10.00009,3\n,T4,1,1,1,5,,,1\n0,T4,64,64,64,11,,,1\n0,T4,64,64,8,8,,,1\n" +
		"1,T4,64,64,64,7,,,1\n1,T4,65,64,64,7,,,1\n")
	want := "m,n,k,series,us,low_us,high_us,figures\n64,64,8,0,8,,,\n64,64,64,0,9.512,9,10,3\n,,,1,7,,,\n"
	must.That(t, got == want && err == nil, "%s %v", got, err)
	for _, row := range []string{"2,T4,64,64,64,9.5,,,1\n", "0,T4,64,64,64,,,,1\n", "0,T4,x,64,64,1,,,1\n"} {
		_, err := build(row)
		must.That(t, err != nil && !strings.Contains(err.Error(), "\n"), "%s: %v", row, err)
	}
}
