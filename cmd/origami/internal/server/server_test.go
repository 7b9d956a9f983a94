package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/origami-gemm/origami/ask"
	"github.com/origami-gemm/origami/ask/models"
	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/fakearch"
	"github.com/origami-gemm/origami/internal/testing/must"
	"github.com/origami-gemm/origami/site/page"
)

// Served is what the tests serve: the questions of the command line, which imports this package.
var Served func() []Endpoint

// serverOf returns a server over a plugin.
func serverOf(t testing.TB, p arch.Provider, o Options) *Server {
	t.Helper()
	f := &session.Factory{
		Streams: iostreams.Plain(strings.NewReader(""), io.Discard, io.Discard), Getenv: func(string) string { return "" },
		Connect: func(context.Context, config.Settings, func(string)) (session.Host, error) {
			return session.InProcess{Providers: models.Providers{p}}, nil
		},
		Settings: config.Settings{DType: "fp16"},
	}
	if o.Rate == 0 {
		o.Rate = 1e6
	}
	if o.TimeLimit == 0 {
		o.TimeLimit = time.Minute
	}
	s := must.Get(New(t.Context(), f, Served(), o))(t)
	return s
}

func get(s *Server, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// failure reads an error.
func failure(t *testing.T, w *httptest.ResponseRecorder) ask.Error {
	t.Helper()
	var f struct{ Error ask.Error }
	if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil || f.Error.What == "" {
		t.Fatalf("%v: %s", err, w.Body)
	}
	return f.Error
}

const shape256 = "m=256&n=256&k=256"

// answered asks for an answer.
func answered(t *testing.T, s *Server, path, query string) string {
	t.Helper()
	w := get(s, "/api/v1/"+path+query)
	must.That(t, w.Code == http.StatusOK && json.Valid(w.Body.Bytes()), "%s%s: %d %.300s", path, query, w.Code, w.Body)
	return w.Body.String()
}

// Every address answers. Of eval, TestEval says so.
func TestAnswers(t *testing.T) {
	s := serverOf(t, fakearch.Toy{}, Options{})
	queries := map[string]string{"/api/v1/eval": "", "/api/v1/archs": "",
		"/api/v1/compare": "?arch=toy1,toy2,toy1@big:units%3D9&" + shape256,
		"/api/v1/map":     "?arch=toy1&m=128:1024&n=256,512&k=256&trans_a=true",
	}
	for path := range s.openAPI()["paths"].(object) {
		query, known := queries[path]
		if !known {
			query = "?arch=toy1@big&trans_b=true&" + shape256
		}
		if path != "/api/v1/eval" {
			answered(t, s, strings.TrimPrefix(path, "/api/v1/"), query)
		}
	}
	answered(t, s, "roofline", "?arch=toy1@big")
}

// An answer that lacks a part of what was asked is an error, unless it says what is missing.
func TestPartOfAnAnswer(t *testing.T) {
	s := serverOf(t, fakearch.Toy{}, Options{})
	const fp8 = "?arch=toy1,toy1@big&dtype=fp8&" + shape256
	w := get(s, "/api/v1/roofline"+fp8)
	must.That(t, w.Code == http.StatusBadRequest &&
		strings.Contains(failure(t, w).What, "does not take fp8"), "%d %s", w.Code, w.Body)
	w = get(s, "/api/v1/compare"+fp8)
	must.That(t, w.Code == http.StatusOK && strings.Contains(w.Body.String(), "not take fp8"), "%d %s", w.Code, w.Body)
}

// What is wrong with a question is said as the command line says it, in the question's words: parameters and paths, no
// flags and no commands. testdata/questions.txt has the code and the error of each question, or with … its beginning.
func TestBadQuestions(t *testing.T) {
	s := serverOf(t, fakearch.Toy{}, Options{Local: true})
	questions := must.Get(os.ReadFile("testdata/questions.txt"))(t)
	for line := range strings.Lines(string(questions)) {
		question, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
		code, target, _ := strings.Cut(question, " ")
		target = strings.NewReplacer("$SHAPE", shape256, "$LONG", strings.Repeat("y", 1<<13)).Replace(target)
		answer := get(s, "http://localhost"+target)
		e := failure(t, answer)
		got := (&diag.Error{What: e.What, Where: e.Where, Fix: e.Fix}).Error()
		begin, more := strings.CutSuffix(want, "…")
		must.That(t, strings.HasPrefix(got, begin) && more != (got == begin) && strconv.Itoa(answer.Code) == code,
			"%s:\n got %d %s\nwant %s %s", target, answer.Code, got, code, want)
		must.That(t, !flags.MatchString(got) && !strings.Contains(got, "`origami"),
			"%s: the words of the command line: %s", target, got)
	}
	// What only a part of the answer lacks says it in the same words.
	answer := get(s, "http://localhost/api/v1/compare?arch=toy1,toy2&kernel=x&"+shape256).Body.String()
	must.That(t, strings.Contains(answer, `"where":"kernel"`) && !flags.MatchString(answer), "%v", answer)
	// So do the descriptions of the parameters.
	paths, _ := json.Marshal(s.openAPI()["paths"])
	found := flags.Find(paths)
	must.That(t, found == nil, "the description has %s", found)
	for _, r := range []*http.Request{
		httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/select", strings.NewReader("x")),
		httptest.NewRequest(http.MethodGet, "http://rebound.example/healthz", nil),
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		must.That(t, w.Code/100 == 4, "%s %s: %d", r.Method, r.URL, w.Code)
	}
	if w := get(s, "http://127.0.0.1:1/healthz"); w.Code != http.StatusOK || w.Body.String() != "ok\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// flags are flags in a text.
var flags = regexp.MustCompile(`(^|[\s"(])--?[a-z]\S*`)

// Of several faults in a question, the same one is said every time.
func TestFaultThatIsSaid(t *testing.T) {
	s := serverOf(t, fakearch.Toy{}, Options{})
	for target, want := range map[string]string{
		"/api/v1/select?arch=toy1&m=x&n=y&k=z&batch=w": `batch "w"`,
		"/api/v1/select?zz=1&yy=1&xx=1&ww=1":           `"ww"`,
	} {
		for range 20 {
			got := failure(t, get(s, target)).What
			must.Need(t, strings.Contains(got, want), "%s: %s", target, got)
		}
	}
}

// This server answers for this machine, whatever it is called.
func TestNamesOfThisMachine(t *testing.T) {
	s := serverOf(t, fakearch.Toy{}, Options{Local: true})
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:8620": 200, "localhost.": 200, "localhost.:8620": 200, "127.0.0.1:1": 200,
		"[::1]": 200, "[::1]:8620": 200,
		"localhost:evil.com": 421, "localhost..": 421, "localhost.evil.com": 421, "localhost:65536": 421,
		"[::1%eth0]": 421, "[::1%eth0]:80": 421, "10.0.0.1": 421, "": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/healthz", nil)
		r.Host = host
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q: %d, want %d", host, w.Code, want)
		}
	}
}

// Another site may lead its reader to the opening page, and may do nothing else.
func TestOtherSites(t *testing.T) {
	s := serverOf(t, fakearch.Toy{}, Options{})
	const question = "/?arch=toy1&" + shape256
	for _, c := range []struct {
		target, site, mode, dest string
		want                     int
	}{
		{"/", "cross-site", "navigate", "document", 200},
		{question, "cross-site", "navigate", "document", 403},
		{"/", "cross-site", "navigate", "iframe", 403},
		{question, "cross-site", "no-cors", "image", 403},
		{"/?", "cross-site", "no-cors", "image", 403},
		{"/api/v1/archs", "cross-site", "navigate", "document", 403},
		{"/page.js", "cross-site", "no-cors", "script", 403},
		{question, "same-origin", "navigate", "document", 200},
		{question, "none", "navigate", "document", 200},
	} {
		w := get(s, c.target, "Sec-Fetch-Site", c.site, "Sec-Fetch-Mode", c.mode, "Sec-Fetch-Dest", c.dest)
		must.That(t, w.Code == c.want, "%s %s %s %s: %d, want %d", c.target, c.site, c.mode, c.dest, w.Code, c.want)
	}
}

// The page is the same for every question, and has its files beside it.
func TestPage(t *testing.T) {
	s := serverOf(t, fakearch.Toy{}, Options{})
	w := get(s, "/")
	must.That(t, w.Code == http.StatusOK && strings.Contains(w.Body.String(), "<form") &&
		w.Header().Get("Content-Security-Policy") == policy && !strings.Contains(policy, "unsafe"), "%d %s", w.Code, w.Body)
	for _, link := range regexp.MustCompile(`(?:src|href)="([a-z]+\.(?:js|css|json))"`).FindAllStringSubmatch(
		w.Body.String(), -1) {
		if of := get(s, "/"+link[1]); of.Code != http.StatusOK || of.Body.Len() == 0 {
			t.Errorf("%s: %d", link[1], of.Code)
		}
	}
	asked := get(s, "/?arch=<script>&"+shape256)
	must.That(t, asked.Body.String() == w.Body.String(), "%d %s", asked.Code, asked.Body)
}

// A list of sizes has the answer to each of them.
func TestListsOfSizes(t *testing.T) {
	s := serverOf(t, fakearch.Toy{}, Options{})
	w := get(s, "/api/v1/select?arch=toy1&problems=m=64,128:256,n=256,k=256")
	var got []json.RawMessage
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got) != 3 {
		t.Fatalf("%v %d %s", err, w.Code, w.Body)
	}
	for i, m := range []string{"64", "128", "256"} {
		one := get(s, "/api/v1/select?arch=toy1&n=256&k=256&m="+m)
		if string(got[i]) != strings.TrimSpace(one.Body.String()) {
			t.Errorf("%s and %s", got[i], one.Body)
		}
	}
	for problems, want := range map[string]string{
		"/etc/passwd": "is no row of sizes", "m=1:1:999,n=1,k=1": "more than 512 problems", "m=1,n=1": "column k is missing",
		"m=0,n=1,k=1": "is zero", "m=1,n=1,k=1&m=2": "problems and m contradict each other",
	} {
		w := get(s, "/api/v1/compare?arch=toy1,toy2&problems="+problems)
		must.That(t, w.Code == http.StatusBadRequest && strings.Contains(failure(t, w).What, want),
			"%s: %d %s", problems, w.Code, w.Body)
	}
}

// markup is what a page must show as text.
const markup = `</script><img src=x onerror="document.documentElement.dataset.hit=1">`

// reflected asks every address with markup in every parameter, and returns the answers.
func reflected(t *testing.T, s *Server) (answers []page.Answer) {
	t.Helper()
	params := map[string]bool{}
	for _, e := range s.endpoints {
		for _, p := range e.parameters() {
			params[p] = true
		}
	}
	must.That(t, len(params) >= 32, "%d parameters", len(params))
	home := get(s, "/").Body.String()
	for name := range params {
		query := "?" + name + "=" + url.QueryEscape(markup)
		if w := get(s, "/"+query); w.Body.String() != home {
			t.Errorf("/%s: %s", query, w.Body)
		}
		for _, e := range s.endpoints {
			w := get(s, "/api/v1/"+e.Name+query)
			if w.Header().Get("Content-Type") != "application/json" || !json.Valid(w.Body.Bytes()) ||
				w.Header().Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s%s: %v %s", e.Name, query, w.Header(), w.Body)
			}
			answers = append(answers, page.Answer{Verb: e.Name, Command: "origami " + markup, JSON: w.Body.Bytes()})
		}
	}
	return answers
}

// Nothing that a request says becomes markup.
func TestMarkup(t *testing.T) {
	answers := reflected(t, serverOf(t, fakearch.Toy{}, Options{}))
	must.That(t, len(answers) >= 8*32, "%d answers", len(answers))
	var out bytes.Buffer
	must.Do(t, page.Write(&out, markup, map[string]string{markup: markup}, answers))
	text := out.String()
	ends, begins := strings.Count(text, "</script>"), strings.Count(text, "<script")
	must.That(t, ends == begins &&
		!strings.Contains(text, "<img"), "%d ends of %d scripts", ends, begins)
}

// Questions beyond the rate are refused.
func TestRate(t *testing.T) {
	s := serverOf(t, fakearch.Toy{}, Options{Rate: 1e-3})
	codes := map[int]int{}
	for range 3 {
		w := get(s, "/api/v1/archs")
		codes[w.Code]++
		must.That(t, w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "",
			"when to ask again is not said")
	}
	must.That(t, codes[http.StatusOK] == 1 && codes[http.StatusTooManyRequests] == 2, "%v", codes)
	if w := get(s, "/healthz"); w.Code != http.StatusOK {
		t.Error("health is limited")
	}
}

// stuck is the toy with a model that answers when its context ends, or panics.
type stuck struct {
	fakearch.Toy
	panics bool
	asked  chan struct{}
}

func (s stuck) Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	a, err := s.Toy.Open(ctx, r)
	return stuckModel{a, s}, err
}

type stuckModel struct {
	arch.Architecture
	stuck
}

func (m stuckModel) Candidates(ctx context.Context, _ gemm.Problem, _ arch.Space) (*arch.Candidates, error) {
	if m.panics {
		panic("a fault")
	}
	m.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// A question that takes too long, or whose client leaves, ends and gives its place back.
func TestTimeLimitAndCancellation(t *testing.T) {
	p := stuck{asked: make(chan struct{}, 100)}
	s := serverOf(t, p, Options{TimeLimit: 30 * time.Millisecond})
	if w := get(s, "/api/v1/select?arch=toy1&"+shape256); w.Code != http.StatusGatewayTimeout ||
		!strings.Contains(failure(t, w).What, "longer than 30ms") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.TimeLimit = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int)
	<-p.asked
	go func() {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/rank?arch=toy1&"+shape256, nil))
		done <- w.Code
	}()
	<-p.asked
	cancel()
	code := <-done
	must.That(t, code == http.StatusServiceUnavailable, "%d", code)
	must.That(t, len(s.working) == 0, "%d places are taken", len(s.working))
	if w := get(s, "/api/v1/archs"); w.Code != http.StatusOK {
		t.Errorf("%d", w.Code)
	}
}

// early is a plugin that sees the end of the time before the server does.
type early struct{ fakearch.Toy }

func (p early) Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	a, err := p.Toy.Open(ctx, r)
	if len(r.Overrides) > 0 {
		err = context.DeadlineExceeded
	}
	return earlyModel{a}, err
}

type earlyModel struct{ arch.Architecture }

func (earlyModel) Candidates(context.Context, gemm.Problem, arch.Space) (*arch.Candidates, error) {
	return nil, context.DeadlineExceeded
}

// Whoever sees first that a question takes too long: the client is told that.
func TestTimeLimitOfThePlugin(t *testing.T) {
	s := serverOf(t, early{}, Options{})
	for _, target := range []string{"/api/v1/select?arch=toy1&" + shape256, "/api/v1/map?arch=toy1&m=64:256&n=64&k=64",
		"/api/v1/select?arch=toy1&problems=m=1,2,n=1,k=1"} {
		w := get(s, target)
		must.That(t, w.Code == http.StatusGatewayTimeout && strings.Contains(w.Body.String(), "longer than 1m0s"),
			"%s: %d %s", target, w.Code, w.Body)
	}
}

// Clients that do not read neither stop the server nor fill its memory.
func TestUnreadAnswers(t *testing.T) {
	s := serverOf(t, fakearch.Toy{}, Options{TimeLimit: 10 * time.Second})
	text := make([]byte, mostAnswer)
	s.handle("GET /large", s.limited(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }))
	server := httptest.NewServer(s)
	defer server.Close()
	unread := func() (answers, bytes int) {
		s.unread.mu.Lock()
		defer s.unread.mu.Unlock()
		return len(s.unread.sending), s.unread.bytes
	}
	most := mostUnread / mostAnswer
	var silent []net.Conn
	for range max(cap(s.working), most) + 2 {
		c := must.Get(net.Dial("tcp", server.Listener.Addr().String()))(t)
		defer c.Close()
		silent = append(silent, c)
		must.Get(io.WriteString(c, "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"))(t)
		for {
			answers, bytes := unread()
			must.Need(t, bytes <= mostUnread, "%d bytes wait", bytes)
			if answers == min(len(silent), most) && len(s.working) == 0 {
				break
			}
			time.Sleep(time.Millisecond)
		}
		// The oldest is cut off, so that a new one is answered.
		r := must.Get(http.Get(server.URL + "/api/v1/archs"))(t)
		if _ = r.Body.Close(); r.StatusCode != http.StatusOK {
			t.Fatalf("%d clients do not read: %d", len(silent), r.StatusCode)
		}
	}
	for i, c := range []net.Conn{silent[0], silent[len(silent)-1]} {
		r := must.Get(http.ReadResponse(bufio.NewReader(c), nil))(t)
		n, err := io.Copy(io.Discard, r.Body)
		must.That(t, (err == nil && n == mostAnswer) == (i == 1), "client %d has %d bytes, %v", i, n, err)
	}
}

// A fault in one question is that question's alone.
func TestFault(t *testing.T) {
	s := serverOf(t, stuck{panics: true}, Options{})
	for _, target := range []string{"/api/v1/select?arch=toy1&" + shape256, "/api/v1/rank?arch=toy1&" + shape256} {
		if w := get(s, target); w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "a fault") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if w := get(s, "/api/v1/archs"); w.Code != http.StatusOK || len(s.working) != 0 {
		t.Errorf("%d, %d places are taken", w.Code, len(s.working))
	}
}

// Questions that come at once get the answers that they get alone.
func TestConcurrentQuestions(t *testing.T) {
	s := serverOf(t, fakearch.Toy{}, Options{})
	var wg sync.WaitGroup
	for i := range 24 {
		target := fmt.Sprintf("/api/v1/%s?arch=toy1:units%%3D%d&m=%d&n=256&k=256", []string{"select", "rank", "explain"}[i%3],
			4+i/3, 64*(1+i%5))
		alone := get(s, target)
		must.Need(t, alone.Code == http.StatusOK, "%v", alone.Body)
		wg.Go(func() {
			w := get(s, target)
			must.That(t, w.Body.String() == alone.Body.String(), "%s: %s", target, w.Body)
		})
	}
	wg.Wait()
}

// Serve ends soon after its context, whatever is asked.
func TestServeEnds(t *testing.T) {
	p := stuck{asked: make(chan struct{}, 1)}
	s := serverOf(t, p, Options{Local: true})
	l := must.Get(net.Listen("tcp", "localhost:0"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	answered := make(chan error, 1)
	go func() {
		r, err := http.Get("http://" + l.Addr().String() + "/api/v1/select?arch=toy1&" + shape256)
		if err == nil {
			err = errors.Join(r.Body.Close())
		}
		answered <- err
	}()
	<-p.asked
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := <-answered; err != nil { // it is cut off or refused, but does not hang
		t.Log(err)
	}
}

// The command ends as every command does that is interrupted, and not as if it had nothing more to do.
func TestRunIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := serverOf(t, fakearch.Toy{}, Options{}).factory
	f.Streams = iostreams.Plain(strings.NewReader(""), io.Discard, writerFunc(func(p []byte) (int, error) {
		cancel() // it listens
		return len(p), nil
	}))
	err := Run(ctx, &Serving{Factory: f, Listen: "localhost:0", Endpoints: Served,
		Limits: Options{Rate: 1, TimeLimit: time.Minute}})
	must.That(t, errors.Is(err, context.Canceled), "%v", err)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// No question makes the server fault.
func FuzzQuestion(f *testing.F) {
	for _, seed := range []string{"arch=toy1&" + shape256, "arch=toy1:units=1,&m=1&n=1&k=1", "%zz", "a;b",
		"m=9223372036854775807"} {
		f.Add(seed)
	}
	s := serverOf(f, fakearch.Toy{}, Options{})
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/select", nil)
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		must.That(t, w.Code != http.StatusInternalServerError && json.Valid(w.Body.Bytes()), "%d %s", w.Code, w.Body)
	})
}
