//go:build linux

package hostile

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/origami-gemm/origami/internal/testing/must"
)

// question is a GET of a server.
type question struct {
	target string
	status int // the right one
	// unread is a client that does not read the answer. Its status is unknown.
	unread bool
}

// pages are questions that cost a page or a server memory.
var pages = []input{
	{name: "report: a device with another clock", codes: []int{0}, args: "report" + sizes + " --arch " + clocks(1)},
	{name: "report: 20 devices with other clocks", codes: []int{0}, slow: true,
		args: "report" + sizes + " --arch " + clocks(20)},
	{name: "compare: 30 devices with other clocks", codes: []int{0},
		args: "compare -m 4096 -n 4096 -k 4096 --arch " + clocks(30)},
	{name: "compare: in this process", codes: []int{0}, slow: true,
		args: "--in-process compare -m 4096 -n 4096 -k 4096 --arch " + clocks(64)},
	{name: "compare: 65 devices", codes: []int{2}, args: "compare -m 4096 -n 4096 -k 4096 --arch " + clocks(65)},
	served("a page of 2 devices with other clocks", page(2, http.StatusOK)),
	served("a comparison of 150 devices", question{target: "/api/v1/compare?m=512&n=512&k=512&arch=" +
		url.QueryEscape(clocks(150)), status: http.StatusBadRequest}),
	slowly(served("3 pages of 8 devices at once", page(8, http.StatusOK), page(7, http.StatusOK), page(6, http.StatusOK))),
	served("3 large answers that nobody reads", unread(1), unread(2), unread(3),
		question{target: "/api/v1/archs", status: http.StatusOK}),
	slowly(served("30 large answers that nobody reads", manyUnread(30)...)),
}

func served(name string, questions ...question) input {
	return input{name: "serve: " + name, codes: []int{143}, args: "serve --listen 127.0.0.1:0 --time-limit 110s",
		questions: questions}
}

// clocks names devices that no model was opened for yet.
func clocks(count int) string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("h200:clock=1.%03dGHz", i+1))
	}
	return strings.Join(names, ",")
}

func page(devices, status int) question {
	return question{target: "/?m=512&n=512&k=512&arch=" + url.QueryEscape(clocks(devices)), status: status}
}

func unread(m int) question {
	return question{target: fmt.Sprintf("/api/v1/rank?arch=h200&top=2000&m=%d&n=4096&k=4096", 4096+m), unread: true}
}

func manyUnread(count int) (questions []question) {
	for i := range count {
		questions = append(questions, unread(i))
	}
	return questions
}

var address = regexp.MustCompile(`http://([0-9.:]+)/`)

// askAll asks a server, whose messages say where it listens, and waits for the answers.
func askAll(t *testing.T, messages string, questions []question) {
	t.Helper()
	at := ""
	for begin := time.Now(); at == ""; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(messages)
		if found := address.FindSubmatch(text); found != nil {
			at = string(found[1])
		}
		must.Need(t, err == nil && time.Since(begin) <= mostTime, "it does not listen: %v %s", err, text)
	}
	var wg sync.WaitGroup
	for _, q := range questions {
		if q.unread {
			c, err := net.Dial("tcp", at)
			if err == nil {
				_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", q.target)
			}
			must.Do(t, err)
			defer c.Close()
			wg.Go(func() { _, _ = c.Read(make([]byte, 1)) }) // the answer has begun
			continue
		}
		wg.Go(func() {
			r, err := http.Get("http://" + at + q.target)
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Body.Close()
			if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != q.status {
				t.Errorf("%.80s: %s, want %d: %v", q.target, r.Status, q.status, err)
			}
		})
	}
	wg.Wait()
}

// remote are the two ends of a command at whose other end an executor is: what a lender is sent, and what it sends.
var remote = []input{
	lend("no line, 1 GiB", repeated("", "x", 1<<30, "")),
	lend("empty lines, 64 MiB", repeated("", "\n", 64*mib, "")),
	lend("a key of 1 GiB", repeated("bm9uZQ==\n", "x", 1<<30, "")),

	borrow("no line, 1 GiB", repeated("", "x", 1<<30, "")),
	borrow("lines, 64 MiB", repeated("", "x\n", 64*mib, "")),
	borrow("no connection behind its line, 1 GiB", repeated("1|1|unix|/nowhere|grpc|\n", "x", 1<<30, "")),
	borrow("another version", text("1|99|unix|/nowhere|grpc|\n")),
}

// lend is what somebody sends to a lender.
func lend(what string, content func(io.Writer)) input {
	return input{name: "lend: " + what, codes: []int{2}, args: "lend hostile-executor", files: files{"in": content},
		stdin: "in"}
}

// borrow is what a lender sends. The words of a command line have no blanks here.
func borrow(what string, content func(io.Writer)) input {
	return input{name: "tune --remote: " + what, codes: []int{3},
		args:  sm89 + "tune p.csv --executor hostile-executor --records run --remote cat<in",
		files: files{"p.csv": text("m,n,k\n512,512,512\n"), "in": content}}
}
