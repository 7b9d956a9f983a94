package datastore

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	coreexec "github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/internal/testing/must"
)

func toy() *dataset.Dataset {
	d := dataset.New("", dataset.Conditions{Arch: "toy1", Device: "small", Kernel: "plain", Input: "normal",
		Executor: "fake", ExecutorVersion: "1"})
	d.Software, d.Source = "fake 1", "a test"
	return d
}

func measurement(m int) dataset.Measurement {
	measured := dataset.Measurement{
		Problem: gemm.New(m, 64, 64), Phase: dataset.Sweep, Status: dataset.OK,
		Config: gemm.Config{BlockM: 16, BlockN: 16, BlockK: 16, GroupM: 1, NumWarps: 4, NumStages: 2, SplitK: 1,
			Kernel: "plain"},
	}
	measured.SetSamples([]coreexec.Sample{{Time: 1e-6}})
	return measured
}

func open(t *testing.T, folder string) *Store {
	t.Helper()
	s := must.Get(Open(t.Context(), folder, toy()))(t)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStore(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, folder)
	must.Do(t, s.Append(measurement(1), measurement(2)))
	// What was appended is in the file before anything is closed.
	d, err := dataset.Read(folder, os.DirFS(folder))
	must.That(t, err == nil && d.Len() == 2, "%v", err)
	// Two writers do not share a folder.
	_, err = Open(t.Context(), folder, toy())
	must.That(t, diag.KindOf(err) == diag.Input &&
		strings.Contains(err.Error(), "another process is writing"), "a second writer: %v", err)
	must.Do(t, s.Close())
	if s = open(t, folder); s.Data.Len() != 2 || s.Torn != nil {
		t.Errorf("%d measurements, %v", s.Data.Len(), s.Torn)
	}
	// A measurement that cannot be read back is not written.
	must.That(t, s.Append(dataset.Measurement{}) != nil, "an empty measurement was written")
	must.Do(t, s.Append(measurement(3)))
	must.Do(t, s.Close())

	// Measurements under other conditions need another folder.
	other := toy()
	other.ExecutorVersion = "2"
	_, err = Open(t.Context(), folder, other)
	must.That(t, diag.KindOf(err) == diag.Input &&
		strings.Contains(err.Error(), `executor_version is "2" and was "1"`), "another version: %v", err)
	// A refused folder is unlocked.
	if s = open(t, folder); s.Data.Len() != 3 {
		t.Errorf("%d measurements", s.Data.Len())
	}
}

// A log is not continued beyond the size that is read.
func TestFullLog(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	must.Do(t, s.Append(measurement(1)))
	s.size = int64(limit.Records) - 10
	err := s.Append(measurement(2))
	must.That(t, diag.KindOf(err) == diag.Input && strings.Contains(err.Error(), "16 GiB"), "%v", err)
	d, err := dataset.Read(folder, os.DirFS(folder))
	must.That(t, err == nil && d.Len() == 1, "%v", err)
}

// Wherever the last line was cut off, the lines before it are kept, and the next line takes its place.
func TestTornLine(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	for m := 1; m <= 3; m++ {
		must.Do(t, s.Append(measurement(m)))
	}
	must.Do(t, s.Close())
	log := filepath.Join(folder, dataset.Log)
	whole := must.Get(os.ReadFile(log))(t)
	line := len(whole) / 3
	for cut := 1; cut < line; cut += 37 {
		must.Do(t, os.WriteFile(log, whole[:len(whole)-cut], 0o600))
		s := open(t, folder)
		if s.Torn == nil || s.Data.Len() != 2 {
			t.Fatalf("cut by %d: %+v, %d measurements", cut, s.Torn, s.Data.Len())
		}
		must.Do(t, s.Append(measurement(3)))
		must.Do(t, s.Close())
		got, err := os.ReadFile(log)
		must.Need(t, err == nil && string(got) == string(whole), "cut by %d: %v, %s", cut, err, got)
	}
}

// A full disk costs the line that does not fit, and nothing of those before it. The limit is on the size of files, and
// for a whole process, so that one is this test again.
func TestFullDisk(t *testing.T) {
	if folder := os.Getenv("STORE_TEST_FOLDER"); folder != "" {
		fill(t, folder)
		return
	}
	folder := t.TempDir()
	self := must.Get(os.Executable())(t)
	cmd := exec.Command(self, "-test.run", "^TestFullDisk$")
	cmd.Env = append(os.Environ(), "STORE_TEST_FOLDER="+folder)
	out, err := cmd.CombinedOutput()
	must.Need(t, err == nil, "%v\n%s", err, out)
	if s := open(t, folder); s.Torn != nil || s.Data.Len() != 3 {
		t.Errorf("%+v, %d measurements", s.Torn, s.Data.Len())
	}
}

func fill(t *testing.T, folder string) {
	s := open(t, folder)
	must.Do(t, s.Append(measurement(1), measurement(2), measurement(3)))
	limit := syscall.Rlimit{Cur: uint64(s.size) + 100, Max: uint64(s.size) + 100}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Skip(err)
	}
	err := s.Append(measurement(4))
	must.That(t, errors.Is(err, syscall.EFBIG) &&
		strings.Contains(err.Error(), "cannot be written"), "%v", err)
}
