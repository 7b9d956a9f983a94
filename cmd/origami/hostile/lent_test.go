//go:build linux

package hostile

import (
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
)

const (
	wanted  = `{"protocol":1,"executor":"hostile-executor","arch":"sm89","warm_l2":false}` + "\n"
	offer   = `{"more":0}` + "\n"
	lending = `{"protocol":1,"name":"x","device":{"Name":"x","Arch":"sm89","Attributes":null,"Kernels":["triton"],` +
		`"Libraries":null},"executor_version":"1","environment":{"time":"2026-01-01T00:00:00Z"}}` + "\n"
)

// lent are the two ends of a GPU that is lent: what a borrower sends to a lender, and a lender to a borrower.
var lent = []input{
	lend("no line, 1 GiB", repeated("", "x", 1<<30, "")),
	lend("empty lines, 64 MiB", repeated("", "\n", 64*mib, "")),
	lend("a line nested 1,000,000 deep", repeated(`{"executor":`, "[", mib-100, "\n")),
	lend("a line of 1 MiB of keys", numbered("{", `"%d":1,`, mib-100, `"x":1}`+"\n")),
	lend("keys twice", text(`{"protocol":1,"protocol":1,"executor":"x","arch":"sm89","warm_l2":false}`+"\n")),
	lend("another protocol", text(`{"protocol":1e300,"executor":"x","arch":"sm89","warm_l2":false}`+"\n")),
	lend("an order of 1 MiB of empty jobs", repeated(wanted+`{"conditions":{},"jobs":[{}`, ",{}", mib-200, "]}\n")),
	lend("an order of numbers that are none", repeated(wanted+`{"conditions":{},"jobs":[{"problem":{"m":1e400}}`,
		`,{"problem":{"m":NaN}}`, mib-200, "]}\n")),
	lend("orders of nothing, 1 MiB", repeated(wanted, `{"conditions":{},"jobs":[]}`+"\n", mib, "")),

	borrow("no line, 1 GiB", repeated("", "x", 1<<30, "")),
	borrow("a line nested 1,000,000 deep", repeated(`{"more":`, "[", mib-100, "\n")),
	borrow("more GPUs than there are numbers", text(`{"more":1e300}`+"\n")),
	borrow("a device of 1 MiB of keys", numbered(offer+`{"protocol":1,"device":{"Attributes":{`, `"%d":1,`, mib-200,
		`"x":1}}}`+"\n")),
	borrow("a device of 1 MiB of families", repeated(offer+`{"protocol":1,"device":{"Kernels":["x"`, `,"x"`, mib-200,
		`]}}`+"\n")),
	borrow("a device whose numbers are none", text(offer+`{"protocol":1,"device":{"Attributes":{"clock":NaN}}}`+"\n")),
	borrow("records that nobody asked for, 60 MiB", repeated(offer+lending, `{"schema":1}`+"\n", 60*mib, "")),
	borrow("records nested 1,000,000 deep", repeated(offer+lending+`{"config":`, "[", mib-100, "\n")),
	borrow("empty records, 60 MiB", repeated(offer+lending, "{}\n", 60*mib, "")),
	borrow("an end with an error of 1 MiB", repeated(offer+lending+`{"end":true,"error":{"kind":1,"what":"`, "x", mib-200,
		`"}}`+"\n")),
}

// lend is what a borrower sends.
func lend(what string, content func(io.Writer)) input {
	return input{name: "lend: " + what, codes: []int{0, 2, 3}, args: "lend gpu", files: files{"in": content}, stdin: "in"}
}

// borrow is what a lender sends.
func borrow(what string, content func(io.Writer)) input {
	return input{name: "tune --lent: " + what, codes: []int{2, 3, 4},
		args:  sm89 + "tune p.csv --executor hostile-executor --records run --lent " + lenderSocket,
		files: files{"p.csv": text("m,n,k\n512,512,512\n")}, lender: content}
}

const lenderSocket = "lender"

// listen lends one GPU at a socket in a folder, if the input has a lender, and then nobody listens any more.
func (h *input) listen(t *testing.T, dir string) (stop func()) {
	t.Helper()
	if h.lender == nil {
		return func() {}
	}
	listener, err := net.Listen("unix", filepath.Join(dir, lenderSocket))
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		conn, err := listener.Accept()
		_ = listener.Close()
		if err != nil {
			return // the command ended before
		}
		served.Go(func() { _, _ = io.Copy(io.Discard, conn) })
		h.lender(regardless{conn})
		_ = conn.Close()
	})
	return func() { _ = listener.Close(); served.Wait() }
}

// regardless takes what is written to a stream that may have ended.
type regardless struct{ io.Writer }

func (w regardless) Write(p []byte) (int, error) {
	_, _ = w.Writer.Write(p)
	return len(p), nil
}
