package calibratecmd

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/origami-gemm/origami/cmd/origami/internal/datastore"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/table"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/calibrate"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/exec"
	"github.com/origami-gemm/origami/core/limit"
)

// replay computes from records alone.
func (o *CalibrateOptions) replay(ctx context.Context) (*outcome, error) {
	records, err := read(ctx, o.Replay)
	if err != nil {
		return nil, err
	}
	p, err := o.Factory.Calibration(ctx, records.Device)
	if err != nil {
		return nil, err
	}
	return newOutcome(ctx, o.Replay, records, p, nil)
}

func read(ctx context.Context, file string) (*calibrate.Records, error) {
	in, err := session.OpenFile(ctx, file)
	if err != nil {
		return nil, unreadable(file, err)
	}
	defer func() { _ = in.Close() }()
	from := io.Reader(in)
	if strings.HasSuffix(file, ".gz") {
		if from, err = gzip.NewReader(in); err != nil {
			return nil, unreadable(file, err)
		}
	}
	return calibrate.ReadRecords(file, limit.Reader(from, file, limit.Records, "give the records of one GPU"))
}

func unreadable(file string, err error) error {
	err = diag.WithoutPath(err)
	return diag.Inputf("the records cannot be read: %v", err).At("%s", file).Do("check the name")
}

// measure measures what the records lack.
func (o *CalibrateOptions) measure(ctx context.Context) (_ *outcome, err error) {
	x, err := o.Factory.Executor(ctx, o.Executor)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := x.Close(); err == nil {
			err = closed
		}
	}()
	runner, ok := x.(exec.Runner)
	if !ok {
		return nil, diag.Inputf("it runs no programs").At("--executor %s", o.Executor).Do("use another executor")
	}
	at, device, err := o.device(ctx, x)
	if err != nil {
		return nil, err
	}
	p, err := o.Factory.Calibration(ctx, device)
	if err != nil {
		return nil, err
	}
	records := &calibrate.Records{Device: device, Executor: o.Executor, Host: session.Software()}
	if named, ok := x.(interface {
		Manifest(ctx context.Context) (exec.Manifest, error)
	}); ok {
		manifest, err := named.Manifest(ctx)
		if err != nil {
			return nil, err
		}
		records.Executor, records.Version = manifest.Name, manifest.Version
	}
	file := o.Records
	if info, err := os.Stat(file); file == "" || err == nil && info.IsDir() {
		file = filepath.Join(file, slug(device.Name)+"-calibration-"+time.Now().Format(time.DateOnly)+".jsonl")
		o.Factory.Streams.Note("measurements are kept in " + file)
	}
	log, err := openLog(ctx, file, records)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := log.Close(); err == nil {
			err = closed
		}
	}()
	bar := table.NewBar(o.Factory.Streams, "calibrating")
	defer bar.Stop()
	s := &calibrate.Session{Plan: p, Device: at, Runner: runner, Environment: x.Environment, Rounds: records.Rounds,
		Keep: func(p *calibrate.Probe, r calibrate.Round) error {
			line, err := calibrate.RoundLine(p.Name, r)
			if err != nil {
				return err
			}
			return log.Write(line)
		},
		Begin: func(probe *calibrate.Probe, done, total int) {
			bar.Set(int64(done), int64(total))
			bar.SetMessage(fmt.Sprintf("%d/%d rounds, %s", done, total, probe.Name))
		}}
	refused, err := s.Run(ctx)
	if err != nil && o.within {
		return nil, err
	}
	if err != nil {
		return nil, datastore.StoppedWith(ctx, err, "what was measured is", file)
	}
	return newOutcome(ctx, file, records, p, refused)
}

// device returns the GPU that --device means, and its number.
func (o *CalibrateOptions) device(ctx context.Context, x exec.Executor) (int, exec.Device, error) {
	devices, err := x.Devices(ctx)
	if err != nil {
		return 0, exec.Device{}, err
	}
	name, number, _ := strings.Cut(o.Factory.Settings.Device, ":")
	if name != "" && name != arch.LiveID {
		return 0, exec.Device{}, diag.Inputf("a GPU of this machine is measured, and %s is a name of origami's",
			o.Factory.Settings.Device).At("--device").Do("use auto, or auto:1 for the second GPU")
	}
	at := 0
	if number != "" {
		if at, err = strconv.Atoi(number); err != nil {
			at = -1
		}
	}
	if at < 0 || at >= len(devices) {
		return 0, exec.Device{}, &diag.Error{Kind: diag.Device, Where: "--device " + arch.LiveID + ":" + number,
			What: "this machine has no such GPU", Fix: fmt.Sprintf("it has %d, numbered from 0", len(devices))}
	}
	return at, devices[at], nil
}

// slug makes a file name of a product name: "nvidia-h200".
func slug(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	return strings.Join(words, "-")
}

// openLog opens a file of records to continue it, and reads what it has into records, or begins it.
func openLog(ctx context.Context, file string, records *calibrate.Records) (log *datastore.Journal, err error) {
	if log, err = datastore.OpenJournal(file); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = log.Close() // the error says more
		}
	}()
	if log.Size() == 0 {
		records.Rounds = map[string][]calibrate.Round{}
		line, err := records.HeaderLine()
		if err != nil {
			return nil, err
		}
		return log, log.Write(line)
	}
	old, err := read(ctx, file)
	if err != nil {
		return nil, err
	}
	if old.Device.Name != records.Device.Name || !reflect.DeepEqual(old.Device.Attributes, records.Device.Attributes) {
		return nil, diag.Inputf("it has measurements of another GPU, or the driver describes it otherwise now: %s",
			old.Device.Name).At("%s", file).Do("name another file with --records")
	}
	*records = *old
	return log, log.Cut(log.Size() - old.Torn)
}
