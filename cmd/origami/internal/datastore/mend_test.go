package datastore

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
)

// failed is a measurement that ended with an error.
func failed(m int, fault dataset.Fault, detail string) dataset.Measurement {
	bad := measurement(m)
	bad.Status, bad.Fault, bad.Detail = dataset.Failed, fault, detail
	bad.SetSamples(nil)
	return bad
}

// Details that older versions recorded.
var (
	executors = []string{
		"plugin x: /opt/origami-plugin-x has changed since it was found and checked; trust the new file if you changed it",
		"plugin x: it cannot be read: open /opt/x: no such file or directory; run it in a shell",
		"plugin x: its socket cannot be created: there is no place for its socket; set TMPDIR",
		"plugin x: it ended before it was ready (signal: killed); run it in a shell",
		"plugin x: Check answered nonsense: the largest error is NaN; report it to the plugin's author",
		"plugin x: it speaks API 3.0.0, this origami speaks 1.0.0; rebuild the plugin",
		"plugin x: Measure failed: grpc: received message larger than max (Internal); report it to the plugin's author",
	}
	kernels = []string{
		"plugin x: it died during Measure (exit status 2): panic: no; report it to the plugin's author",
		"plugin x: it did not answer Measure within 30s; it was stopped; report it to the plugin's author",
		"cuda: too many resources requested for launch", "out of memory", "",
	}
)

// What was the executor's fault is taken out. All else stays, byte for byte, in all files.
func TestMend(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	var good []byte
	put := func(m dataset.Measurement, stays bool) {
		t.Helper()
		if err := s.Append(m); err != nil {
			t.Fatal(err)
		}
		if stays {
			good = append(good, s.line...)
		}
	}
	put(measurement(1), true)
	for i, detail := range executors {
		put(failed(10+i, "", detail), false)
		put(failed(30+i, dataset.FaultKernel, detail), true) // said today, it is the kernel's
		put(measurement(50+i), true)
	}
	for i, detail := range kernels {
		put(failed(70+i, "", detail), true)
	}
	if _, err := Mend(folder); diag.KindOf(err) != diag.Input || !strings.Contains(err.Error(), "another process") {
		t.Errorf("mended while it is written: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(folder, dataset.Log)
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	// An archive with the same lines of other sizes, and a torn tail of the log.
	archive := filepath.Join(folder, "old.jsonl.gz")
	others := bytes.ReplaceAll(whole, []byte(`"n":64`), []byte(`"n":128`))
	if err := os.WriteFile(archive, pack(t, others), 0o600); err != nil {
		t.Fatal(err)
	}
	const torn = `{"schema":1,"phase":"swe`
	if err := errors.Join(os.WriteFile(log, append(whole, torn...), 0o600), os.Chmod(log, 0o640)); err != nil {
		t.Fatal(err)
	}
	removed, err := Mend(folder)
	if err != nil || len(removed) != 2*len(executors) || removed[0].Where != log+":2" ||
		removed[0].Detail != executors[0] {
		t.Fatalf("%d removed, %v", len(removed), err)
	}
	if got, err := os.ReadFile(log); err != nil || string(got) != string(good)+torn {
		t.Errorf("%v: the log is\n%s\nand not\n%s%s", err, got, good, torn)
	}
	want := bytes.ReplaceAll(good, []byte(`"n":64`), []byte(`"n":128`))
	if got := unpack(t, archive); !bytes.Equal(got, want) {
		t.Errorf("the archive is\n%s\nand not\n%s", got, want)
	}
	if info, err := os.Stat(log); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	// A second time there is nothing to do, and the file is not written.
	before, _ := os.Stat(log)
	if removed, err := Mend(folder); err != nil || len(removed) != 0 {
		t.Errorf("%v, %v", removed, err)
	}
	if after, err := os.Stat(log); err != nil || !os.SameFile(before, after) {
		t.Error("the log was written without need")
	}
	if s = open(t, folder); s.Data.Count(WronglyFailed) != 0 || s.Data.Len() != 2*(1+2*len(executors)+len(kernels)) {
		t.Errorf("%d measurements", s.Data.Len())
	}
}

// A folder that cannot be read is left as it is.
func TestMendNothing(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	if err := errors.Join(s.Append(failed(1, "", executors[0])), s.Close()); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(folder, dataset.Log)
	whole, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	broken := "{}\n" + string(whole)
	if err := os.WriteFile(log, []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	if removed, err := Mend(folder); diag.KindOf(err) != diag.Input || removed != nil {
		t.Errorf("%v, %v", removed, err)
	}
	if got, err := os.ReadFile(log); err != nil || string(got) != broken {
		t.Errorf("%v, %s", err, got)
	}
	empty := t.TempDir()
	if _, err := Mend(empty); err == nil {
		t.Error("a folder without a data set was mended")
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func pack(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func unpack(t *testing.T, file string) []byte {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
