package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/internal/testing/fake"
	"github.com/origami-gemm/origami/sdk/serve"
)

// runPlugin is a plugin that misbehaves according to its mode: "what" or "what.Call". The id of its architecture is
// the mode. Each run adds a line to the file of started().
func runPlugin(mode string) {
	f, err := os.OpenFile(started(mode), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, os.Args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	runs, _ := os.ReadFile(started(mode))
	first := strings.Count(string(runs), "\n") == 1

	behaviour, isExecutor := strings.CutPrefix(mode, executorPrefix)
	what, call, _ := strings.Cut(behaviour, ".")
	p := provider{Provider: fake.Provider{Name: mode}, what: what, call: call}
	switch what {
	case "exit":
		fmt.Fprintln(os.Stderr, "cannot load libnone.so")
		os.Exit(3)
	case "slow":
		time.Sleep(slowStart)
	case "plain": // speaks without TLS
		_ = os.Unsetenv("PLUGIN_CLIENT_CERT")
	case "elsewhere": // gives the host another process's address
		fmt.Println("1|2|tcp|127.0.0.1:9|grpc|")
		time.Sleep(time.Minute)
	case "environment":
		_ = os.WriteFile(started(mode)+".env", []byte(strings.Join(os.Environ(), "\n")), 0o600)
	case "badlog":
		fmt.Fprintln(os.Stderr, `{"@message":1,"@level":{"a":2},"@timestamp":[]}`)
		fmt.Fprintln(os.Stderr, `{"@message":"hi","@level":7}`)
		fmt.Fprintln(os.Stderr, `{"@message":"null level","@level":null,"@timestamp":null,"":{}}`)
		fmt.Fprintln(os.Stderr, strings.Repeat("long ", 1<<16))
	case "drift":
		p.drift = !first
	}
	if isExecutor {
		serve.MainExecutor(executorProvider{fake.ExecutorProvider{Name: mode}, p})
	}
	if len(os.Args) > 1 && os.Args[1] == asPlugin {
		serve.Serve(p)
		os.Exit(0)
	}
	serve.Main(p)
}

// slowStart is how long a slow plugin takes to start.
const slowStart = 700 * time.Millisecond

// started names the file with a line per start of a plugin.
func started(mode string) string { return filepath.Join(os.TempDir(), "started-"+mode) }

type provider struct {
	fake.Provider
	what, call string
	drift      bool
}

func (p provider) Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	a, err := p.Provider.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	if p.drift {
		a.Describe().Units++
	}
	if p.call == "" && p.what != "big" {
		return a, nil
	}
	return &faulty{a, p}, nil
}

func (p provider) act(call string) {
	if call != p.call {
		return
	}
	switch p.what {
	case "panic":
		panic("boom in " + call)
	case "hang":
		for {
			time.Sleep(time.Hour)
		}
	case "print":
		fmt.Println("to standard output")
		fmt.Fprintln(os.Stderr, "to standard error")
		hclog.Default().Warn("to the log", "call", call)
	}
}

type faulty struct {
	arch.Architecture
	p provider
}

// bigCount is more configurations than one call of Estimate takes.
const bigCount = 40_000

func (f *faulty) Candidates(ctx context.Context, p gemm.Problem, s arch.Space) (*arch.Candidates, error) {
	c, err := f.Architecture.Candidates(ctx, p, s)
	if f.p.what == "big" && err == nil {
		big := *c
		for len(big.Configs) < bigCount {
			big.Configs = append(big.Configs, c.Configs...)
		}
		big.Rejected = nil
		for i := range bigCount {
			big.Rejected = append(big.Rejected, arch.Rejection{Config: c.Configs[0], Position: i, Reason: "big",
				Detail: strings.Repeat("a detail that makes the answer large ", 3)})
		}
		return &big, nil
	}
	return c, err
}

func (f *faulty) Terms(ctx context.Context, dst []float64, p gemm.Problem, cfgs []gemm.Config) error {
	f.p.act("Terms")
	return f.Architecture.Terms(ctx, dst, p, cfgs)
}
