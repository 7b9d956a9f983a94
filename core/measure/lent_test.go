package measure

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/origami-gemm/origami/core/dataset"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/limit"
	"github.com/origami-gemm/origami/core/unit"
)

// closedEnd is a stream whose other end is closed after an offer.
type closedEnd struct{ io.Reader }

func (closedEnd) Write([]byte) (int, error) { return 0, syscall.EPIPE }
func (closedEnd) Close() error              { return nil }

// A command whose own output is closed has succeeded: a lender that is gone must not look like that.
func TestLostLender(t *testing.T) {
	_, err := Borrow(t.Context(), closedEnd{strings.NewReader(`{"more":0}` + "\n")}, Wanted{})
	if err == nil || errors.Is(err, syscall.EPIPE) || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("%v", err)
	}
}

// The origami of a lender, or of the borrower, was replaced by another version, which says more than this one knows.
func TestLentByAnotherVersion(t *testing.T) {
	for _, says := range []string{`{"protocol":99,"name":"x"}`, `{"protocol":99,"name":"x","mood":"new"}`} {
		here, there := net.Pipe()
		go func() {
			lender := newStream(there)
			_ = lender.send([]byte("{}\n"))
			_, _ = lender.next()
			_ = lender.send([]byte(says + "\n"))
		}()
		_, err := Borrow(t.Context(), here, Wanted{})
		if diag.KindOf(err) != diag.Plugin || !strings.Contains(err.Error(), "; install one version ") {
			t.Errorf("a lender that says %s: %v", says, err)
		}
	}
	here, there := net.Pipe()
	answer := make(chan error, 1)
	go func() {
		borrower := newStream(there)
		_ = borrower.send([]byte(`{"protocol":99,"mood":"new"}` + "\n"))
		var l Lending
		err := borrower.read(&l)
		if err == nil && l.Protocol == lendingProtocol {
			t.Error("the borrower is told that the version is the same")
		}
		answer <- err
	}()
	err := Lend(t.Context(), here, "x", func(context.Context, Wanted) (*Sweep, Lending, error) {
		t.Error("a GPU is opened for a borrower of another version")
		return nil, Lending{}, errors.ErrUnsupported
	})
	const another = "its version of origami is another one"
	if told := <-answer; told != nil || err == nil || !strings.Contains(err.Error(), another) {
		t.Errorf("the lender: %v; the borrower is told %v", err, told)
	}
}

// An order is a line that the lender reads, however many kernels are wanted.
func TestLongOrders(t *testing.T) {
	here, there := net.Pipe()
	conditions := dataset.Conditions{Arch: "toy1", Device: "d", Kernel: "f", Input: "normal", Executor: "x",
		ExecutorVersion: "1"}
	jobs := make(chan int, 100)
	go func() {
		defer close(jobs)
		lender := newStream(there)
		write := func(v any) {
			if err := lender.write(v); err != nil {
				t.Error(err)
			}
		}
		write(Offer{})
		if _, err := lender.next(); err != nil {
			t.Error(err)
		}
		write(Lending{Protocol: lendingProtocol, Name: "x"})
		for {
			text, err := lender.next()
			if err != nil {
				return
			}
			var o order
			if err := json.Unmarshal(text, &o); err != nil || len(text) > limit.Line/2+1<<12 {
				t.Errorf("%d bytes, %v", len(text), err)
			}
			jobs <- len(o.Jobs)
			for i := range o.Jobs {
				p, _ := o.Jobs[i].Problem.Problem()
				m := dataset.Measurement{Problem: p, Config: o.Jobs[i].Config, Phase: dataset.Sweep, Status: dataset.NotBuilt,
					Detail: "it does not"}
				m.Config.Kernel = o.Conditions.Kernel
				line, err := dataset.AppendLine(nil, o.Conditions, &m)
				if err = errors.Join(err, lender.send(line)); err != nil {
					t.Error(err)
					return
				}
			}
			write(ended{End: true})
		}
	}()
	l, err := Borrow(t.Context(), here, Wanted{})
	if err != nil {
		t.Fatal(err)
	}
	const wanted = 2*mostOrdered + 1
	todo := make([]dataset.Measurement, wanted)
	for i := range todo {
		todo[i] = dataset.Measurement{Problem: gemm.New(64, 64, 64), Config: gemm.Config{Kernel: "f", BlockM: 1 + i%4096,
			BlockN: 1 + i/4096, BlockK: 16, NumWarps: 1, NumStages: 1, GroupM: 1, SplitK: 1}}
	}
	kept := 0
	s := &Sweep{Data: dataset.New("", conditions), Keep: func(ms ...dataset.Measurement) error {
		kept += len(ms)
		return nil
	}}
	if err := l.measureAll(context.Background(), s, todo, map[gemm.Problem]unit.Seconds{}); err != nil || kept != wanted {
		t.Errorf("%d of %d were kept: %v", kept, wanted, err)
	}
	_ = l.Close()
	orders, sum := 0, 0
	for n := range jobs {
		orders, sum = orders+1, sum+n
	}
	if orders < 3 || sum != wanted {
		t.Errorf("%d orders of %d jobs", orders, sum)
	}
}
