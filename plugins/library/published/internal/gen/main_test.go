package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const folder = "../.." // of the package

// The shipped tables are those that the inputs give. They take a while: ORIGAMI_TEST_ALL=1 builds them.
func TestTablesAreRebuilt(t *testing.T) {
	if os.Getenv("ORIGAMI_TEST_ALL") != "1" {
		t.Skip("ORIGAMI_TEST_ALL=1 builds them")
	}
	to := t.TempDir()
	if err := build(folder, to); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"series.csv", "times.csv.gz"} {
		if !bytes.Equal(content(t, filepath.Join(to, name)), content(t, filepath.Join(folder, name))) {
			t.Errorf("%s is not what its inputs give: run go generate ./plugins/library/published", name)
		}
	}
}

// content is what a file holds, decompressed: compressors differ between versions.
func content(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return text
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err == nil {
		text, err = io.ReadAll(z)
	}
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The inputs are as they were recorded.
func TestInputsAreAsRecorded(t *testing.T) {
	names, err := checked(folder)
	files, _ := filepath.Glob(filepath.Join(folder, "tables", "*.csv.gz"))
	if err != nil || len(files) == 0 || len(names) != len(files) {
		t.Errorf("SHA256SUMS lists %v, and the folder has %v: %v", names, files, err)
	}
}

// A part without a row in parts.csv, a source that nobody knows and a file that was changed are errors of one line.
func TestMistakes(t *testing.T) {
	const header = "device,arch,dtype,scheme,out_dtype,m,n,k,trans_a,trans_b,library,source,cache,time_us,figures\n"
	for says, row := range map[string]string{
		`the part "H900" has no row in parts.csv`: "H900,,fp16,,,64,64,64,0,1,cuBLAS,NeuSight,warm,9.5,1\n",
		"an unknown source":                       "T4,,fp16,,,64,64,64,0,1,cuBLAS,nobody,warm,9.5,1\n",
	} {
		dir := t.TempDir()
		put := func(name string, text []byte) {
			t.Helper()
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var table bytes.Buffer
		z := gzip.NewWriter(&table)
		_, _ = z.Write([]byte(header + row))
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		put("tables/new.csv.gz", table.Bytes())
		put("parts.csv", []byte("part,device\nT4,sm75@t4\n"))
		put(sums, []byte("0  new.csv.gz\n"))
		err := build(dir, dir)
		if err == nil || !strings.Contains(err.Error(), "tables/new.csv.gz: its SHA-256 is ") {
			t.Fatal(err)
		}
		sum, _, _ := strings.Cut(strings.SplitAfter(err.Error(), "its SHA-256 is ")[1], ",")
		put(sums, []byte(sum+"  new.csv.gz\n"))
		if err = build(dir, dir); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, says)
		}
	}
}
