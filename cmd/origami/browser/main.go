//go:build js

// Command browser is `origami serve` without a server: the built-in models and the handler of its JSON as one
// WebAssembly module, which a service worker asks (site/worker.js). `make site` builds it.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strings"
	"syscall/js"
	"time"

	"github.com/origami-gemm/origami/cmd/origami/internal/config"
	"github.com/origami-gemm/origami/cmd/origami/internal/iostreams"
	"github.com/origami-gemm/origami/cmd/origami/internal/server"
	"github.com/origami-gemm/origami/cmd/origami/internal/session"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/catalogcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/comparecmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/pickcmd"
	"github.com/origami-gemm/origami/cmd/origami/internal/verb/picturecmd"
	"github.com/origami-gemm/origami/plugins/builtins"
)

func main() {
	// The one thread collects too, and a tab has more memory than time.
	debug.SetGCPercent(400)
	f := &session.Factory{
		Streams: iostreams.Plain(strings.NewReader(""), io.Discard, os.Stderr), Getenv: func(string) string { return "" },
		Connect: connect, Settings: config.Settings{DType: "fp16"},
	}
	// What needs no measurements, which are larger than all models.
	predictions := []server.Endpoint{pickcmd.SelectServed, pickcmd.RankServed, pickcmd.ExplainServed, comparecmd.Served,
		picturecmd.RooflineServed, picturecmd.MapServed, catalogcmd.Served}
	s, err := server.New(context.Background(), f, predictions, server.Options{
		Rate: 1e6, TimeLimit: time.Hour, // one reader asks, who can close the tab
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	js.Global().Call("origamiReady", js.FuncOf(func(_ js.Value, args []js.Value) any {
		path, done := args[0].String(), args[1]
		go func() { done.Invoke(answer(s, path)) }() // what JavaScript calls may not wait
		return nil
	}))
	select {}
}

// connect reaches the models of this program.
func connect(context.Context, config.Settings, func(string)) (session.Host, error) {
	all, err := builtins.Providers()
	return session.InProcess{Providers: all}, err
}

// answer asks for a path with its query, and returns what the constructor of a Response takes. It takes no
// http.Handler: a Server in an interface has all its methods in the program, and with them the network.
func answer(s *server.Server, path string) js.Value {
	w := &response{header: http.Header{}, status: http.StatusOK}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, path, nil)
	if err != nil {
		w.status = http.StatusBadRequest
		fmt.Fprintln(w, err)
	} else {
		s.ServeHTTP(w, r)
	}
	headers := map[string]any{}
	for name := range w.header {
		headers[name] = w.header.Get(name)
	}
	body := js.Global().Get("Uint8Array").New(w.Len())
	js.CopyBytesToJS(body, w.Bytes())
	return js.ValueOf(map[string]any{"status": w.status, "headers": headers, "body": body})
}

// response is an http.ResponseWriter that keeps what it is given.
type response struct {
	bytes.Buffer
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) { w.status = status }
