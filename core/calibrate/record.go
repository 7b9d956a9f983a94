package calibrate

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/strictjson"
)

// Schema is the version of the record format, and the only version that is read.
const Schema = 1

// Records is what was measured of one device: a header and rounds, in a file of a line each.
type Records struct {
	// Device is what the driver said. Executor names the executor and its version, Host the program that asked it.
	Device                  exec.Device
	Executor, Version, Host string
	Rounds                  map[string][]Round
	// Torn is the number of bytes of an incomplete last line, which an interrupted run leaves.
	Torn int64
}

type header struct {
	Schema     int                `json:"schema"`
	Name       string             `json:"driver_device_name"`
	Arch       string             `json:"arch"`
	Attributes map[string]float64 `json:"attributes"`
	Executor   string             `json:"executor"`
	Version    string             `json:"executor_version"`
	Host       string             `json:"host_software,omitempty"`
}

type roundLine struct {
	Probe string `json:"probe"`
	Round
}

// HeaderLine returns the first line of a record file, with its line feed.
func (r *Records) HeaderLine() ([]byte, error) {
	return limit.JSONLine(header{Schema, r.Device.Name, r.Device.Arch, r.Device.Attributes, r.Executor, r.Version, r.Host})
}

// RoundLine returns a round as a line, with its line feed.
func RoundLine(probe string, r Round) ([]byte, error) {
	r.Environment, r.Readings = r.Environment.Recorded(), slices.Clone(r.Readings)
	for i := range r.Readings {
		r.Readings[i].Clock = exec.Finite(r.Readings[i].Clock)
	}
	return limit.JSONLine(roundLine{probe, r})
}

// ReadRecords reads a record file strictly. An incomplete last line is left out, and Torn counts its bytes.
func ReadRecords(file string, in io.Reader) (*Records, error) {
	const fix = "give a file that calibrate wrote"
	lines := limit.NewLines(in)
	r := &Records{Rounds: map[string][]Round{}}
	seen := map[[sha256.Size]byte]int{}
	for n := 1; ; n++ {
		line, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF) && n == 1:
			return nil, diag.Inputf("the file has no complete line").At("%s", file).Do(fix)
		case errors.Is(err, io.EOF):
			r.Torn = int64(len(line))
			return r, nil
		case err != nil:
			return nil, diag.Inputf("it cannot be read: %v", err).At("%s:%d", file, n).Do(fix)
		}
		if n == 1 {
			err = r.readHeader(line)
		} else {
			err = r.readRound(line, seen, n)
		}
		if err != nil {
			return nil, diag.Inputf("%v", err).At("%s:%d", file, n).Do(fix)
		}
	}
}

func (r *Records) readHeader(line []byte) error {
	var h header
	if err := strictjson.Unmarshal(line, &h); err != nil {
		return err
	}
	if h.Schema != Schema {
		return fmt.Errorf("schema %d, and only %d is read", h.Schema, Schema)
	}
	if h.Name == "" || h.Arch == "" {
		return errors.New("the first line names no device")
	}
	r.Device = exec.Device{Name: h.Name, Arch: h.Arch, Attributes: h.Attributes}
	r.Executor, r.Version, r.Host = h.Executor, h.Version, h.Host
	return nil
}

// readRound adds the round of the n-th line. seen has the lines of the rounds so far.
func (r *Records) readRound(line []byte, seen map[[sha256.Size]byte]int, n int) error {
	var l roundLine
	if err := strictjson.Unmarshal(line, &l); err != nil {
		return err
	}
	if l.Probe == "" || len(l.Readings) == 0 {
		return errors.New("a round needs a probe and readings")
	}
	if !(l.Work > 0) {
		return fmt.Errorf("a round with a work of %v", l.Work)
	}
	for _, s := range l.Readings {
		if !(s.Time > 0) || !(s.Clock >= 0) {
			return fmt.Errorf("a reading of %v s at %v Hz", float64(s.Time), float64(s.Clock))
		}
	}
	same, err := RoundLine(l.Probe, l.Round)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(same)
	if first := seen[sum]; first > 0 { // it would count twice
		return fmt.Errorf("the round of line %d is there again", first)
	}
	seen[sum] = n
	r.Rounds[l.Probe] = append(r.Rounds[l.Probe], l.Round)
	return nil
}
