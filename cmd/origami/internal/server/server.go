// Package server answers over HTTP what the command line answers: the same JSON, and pages. It runs no program for a
// request and opens no file that a request names.
package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/origami-gemm/origami/ask/question"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/core/diag"
	"github.com/origami-gemm/origami/core/keep"
	"github.com/origami-gemm/origami/site/page"
)

// Options are the limits of a server.
type Options struct {
	// Rate is how many questions per second are answered, of all clients together. Twice as many may come at once.
	Rate float64
	// TimeLimit is how long one question may take.
	TimeLimit time.Duration
	// Local says that only this machine is to ask: names of other hosts are refused, so that no web site can.
	Local bool
}

// The limits that nobody has to choose.
const (
	mostHeader = 16 << 10
	mostQuery  = 4 << 10
	mostAnswer = 16 << 20
	// mostUnread is what may wait for clients that do not read, of all answers together.
	mostUnread = 2 * mostAnswer
)

// Server answers questions. It is an http.Handler.
type Server struct {
	Options
	endpoints []Endpoint
	factory   *session.Factory
	mux       *http.ServeMux
	limiter   *rate.Limiter
	// working has a place for each question that is being answered. Its client reads later.
	working chan struct{}
	unread  outbox
}

// New connects to the plugins and returns a server.
func New(ctx context.Context, f *session.Factory, endpoints []Endpoint, o Options) (*Server, error) {
	if _, err := f.Manifests(ctx); err != nil { // so that requests share the plugins
		return nil, err
	}
	s := &Server{Options: o, endpoints: endpoints, factory: f, mux: http.NewServeMux(),
		limiter: rate.NewLimiter(rate.Limit(o.Rate), max(1, int(2*o.Rate))),
		working: make(chan struct{}, runtime.GOMAXPROCS(0))}
	for _, e := range endpoints {
		e.params = e.parameters()
		s.handle("GET /api/v1/"+e.Name, s.limited(func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, e) }))
	}
	s.handle("GET /openapi.json", s.describe)
	files := http.FileServerFS(page.Files)
	for _, name := range page.Names() {
		s.handle("GET /"+name, files.ServeHTTP)
	}
	s.handle("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return s, nil
}

// Serve answers until the context ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{Handler: s, MaxHeaderBytes: mostHeader,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: s.TimeLimit + 10*time.Second, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		// Questions in progress end with the context. Their clients get a moment to read that.
		wait, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if h.Shutdown(wait) != nil {
			_ = h.Close()
		}
	}()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-done
	return nil
}

// handle lets a fault in a request end no other.
func (s *Server) handle(pattern string, h http.HandlerFunc) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if fault := recover(); fault != nil {
				s.factory.Streams.Warn(fmt.Sprintf("%s: %v", pattern, fault))
				refuse(w, http.StatusInternalServerError, &diag.Error{What: "the question could not be answered"})
			}
		}()
		h(w, r)
	})
}

// policy is what a page may do: draw with its own scripts, and ask this server.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src " +
	"'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	switch {
	case s.Local && !local(r.Host):
		refuse(w, http.StatusMisdirectedRequest, diag.Inputf("this server answers for localhost alone").At("%s", r.Host).
			Do("use http://localhost"))
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		refuse(w, http.StatusMethodNotAllowed, diag.Inputf("questions are asked with GET").At("%s", r.Method).Do("use GET"))
	case len(r.URL.RawQuery) > mostQuery:
		refuse(w, http.StatusRequestURITooLong, diag.Inputf("the question has more than %d bytes", mostQuery).
			Do("ask a shorter one"))
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" && !follows(r):
		refuse(w, http.StatusForbidden, diag.Inputf("another site asks").Do("ask from this server's own page"))
	default:
		if _, pattern := s.mux.Handler(r); pattern == "" {
			refuse(w, http.StatusNotFound, diag.Inputf("there is nothing at %s", r.URL.Path).Do("see openapi.json"))
			return
		}
		s.mux.ServeHTTP(w, r)
	}
}

// follows reports whether a person follows a link to the opening page. A link with a question costs the server an
// answer.
func follows(r *http.Request) bool {
	return r.URL.Path == "/" && r.URL.RawQuery == "" &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// local reports whether a Host header names this machine.
func local(host string) bool {
	if name, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		host = name
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.IsLoopback() && a.Zone() == ""
}

// limited answers a few questions at once, so many per second, and each for a limited time.
func (s *Server) limited(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.limiter.Allow() {
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusTooManyRequests, diag.Inputf("more than %g questions per second are asked", s.Rate).
				Do("ask again in a second"))
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), s.TimeLimit)
		defer cancel()
		answer := &held{ResponseWriter: w, status: http.StatusOK}
		select {
		case s.working <- struct{}{}:
			func() {
				defer func() { <-s.working }()
				defer keep.Asked()()
				h(answer, r.WithContext(ctx))
			}()
		case <-ctx.Done():
			refuse(answer, http.StatusServiceUnavailable, &diag.Error{What: "other questions take all the time",
				Fix: "ask again later"})
		}
		s.unread.send(answer)
	}
}

// held is an answer that is sent once it is complete.
type held struct {
	http.ResponseWriter
	status int
	text   []byte
}

// WriteHeader implements http.ResponseWriter.
func (a *held) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter. It keeps p, which no handler uses again: answers may be large.
func (a *held) Write(p []byte) (int, error) {
	if a.text == nil {
		a.text = slices.Clip(p)
	} else {
		a.text = append(a.text, p...)
	}
	return len(p), nil
}

// outbox has the answers that are being sent. The zero outbox is ready.
type outbox struct {
	mu      sync.Mutex
	sending []*held // the oldest first
	bytes   int
}

// send sends an answer. If too much waits for clients that do not read, those that had the most time are cut off.
func (o *outbox) send(a *held) {
	o.mu.Lock()
	o.bytes += len(a.text)
	for o.bytes > mostUnread && len(o.sending) > 0 {
		// What cannot be cut off, as in a test, is not waited for either.
		_ = http.NewResponseController(o.sending[0].ResponseWriter).SetWriteDeadline(time.Now())
		o.drop(o.sending[0])
	}
	o.sending = append(o.sending, a)
	o.mu.Unlock()

	a.ResponseWriter.WriteHeader(a.status)
	_, _ = a.ResponseWriter.Write(a.text) // the client is gone
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(a)
}

// drop forgets an answer, unless it is forgotten.
func (o *outbox) drop(a *held) {
	if i := slices.Index(o.sending, a); i >= 0 {
		o.sending = slices.Delete(o.sending, i, i+1)
		o.bytes -= len(a.text)
	}
}

// late reports whether a question ended with its time. A plugin may see that a moment before the context does.
func late(ctx context.Context, err error) bool {
	return errors.Is(ctx.Err(), context.DeadlineExceeded) ||
		diag.KindOf(err) == diag.Internal && errors.Is(err, context.DeadlineExceeded)
}

// statusOf is the status of an error.
func statusOf(ctx context.Context, err error) int {
	switch {
	case late(ctx, err):
		return http.StatusGatewayTimeout
	case ctx.Err() != nil:
		return http.StatusServiceUnavailable
	}
	switch diag.KindOf(err) {
	case diag.Input:
		return http.StatusBadRequest
	case diag.Plugin, diag.Device:
		return http.StatusBadGateway
	default:
		return http.StatusInternalServerError
	}
}

// failure is an error as a client sees it who may give these parameters.
func (s *Server) failure(ctx context.Context, err error, params []string) error {
	if late(ctx, err) {
		return &diag.Error{What: fmt.Sprintf("the answer takes longer than %v", s.TimeLimit), Fix: "ask for less at once"}
	}
	return s.hintFor(params)(err)
}

// refuse writes an error as the command line does with --json.
func refuse(w http.ResponseWriter, status int, err error) {
	var out bytes.Buffer
	streams := iostreams.Plain(strings.NewReader(""), io.Discard, &out)
	streams.JSONErrors = true
	streams.Report(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // the client is gone
}

// buffer is an answer that may not grow without end.
type buffer struct{ bytes.Buffer }

var errTooLarge = diag.Inputf("the answer has more than %d bytes", mostAnswer).Do("ask for less at once")

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > mostAnswer {
		return 0, errTooLarge
	}
	return b.Buffer.Write(p)
}

// asked returns the parameters of a request. Each is given once, and is one of those that are known.
func asked(r *http.Request, known []string) (map[string]string, error) {
	values := map[string]string{}
	query := r.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) { // of several faults, the same one is said every time
		switch all := query[name]; {
		case !slices.Contains(known, name):
			return nil, question.Unknown("parameter", name, known)
		case len(all) > 1:
			return nil, diag.Inputf("%s is given twice", name).Do("give it once")
		case all[0] != "":
			values[name] = all[0]
		}
	}
	return values, nil
}
