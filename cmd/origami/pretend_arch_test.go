package main

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/fit"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/unit"
	"github.com/origami-gemm/origami/sdk/example"
	"github.com/origami-gemm/origami/sdk/serve"
)

// pretendedArchs are plugins that model architectures. All except the first break a rule.
var pretendedArchs = map[string]func(){
	"origami-plugin-sound": func() { serve.Main(roofline()) },
	"origami-plugin-restless": func() {
		var calls atomic.Int64
		serve.Main(moody{roofline(),
			func(est []arch.Estimate, _ gemm.Problem) { est[0].Cycles += unit.Cycles(calls.Add(1)) }})
	},
	"origami-plugin-brittle": func() {
		serve.Main(moody{roofline(), func(_ []arch.Estimate, p gemm.Problem) {
			if p == gemm.New(1, 1, 1) {
				panic("a tile of nothing")
			}
		}})
	},
	"origami-plugin-stuck": func() {
		serve.Main(moody{roofline(), func(_ []arch.Estimate, p gemm.Problem) {
			if p.K == 1 {
				select {}
			}
		}})
	},
	"origami-plugin-loud": func() {
		fmt.Fprintln(os.Stderr, `{"@level":"warn","@message":"\u001b[2J\u202ehello\nFORGED","key":"\u009b\nFORGED"}`)
		serve.Main(moody{roofline(), func([]arch.Estimate, gemm.Problem) {}})
	},
	// These two say in a file of their temporary folder that they were asked, and never answer.
	"origami-plugin-caught": func() {
		serve.Main(moody{roofline(), func([]arch.Estimate, gemm.Problem) { hang("estimating") }})
	},
	"origami-plugin-undescribed": func() { hang("describing") },
	"origami-plugin-later": func() {
		fmt.Println(`{"info":{"name":"later","version":"9"},"protocols":[9]}`)
	},
	"origami-plugin-mute": func() {
		if len(os.Args) > 1 {
			serve.Main(roofline()) // it can describe itself
		}
		fmt.Println("hello?")
	},
}

func hang(file string) {
	_ = osexec.Command("sleep", "1000").Start() // which must end too
	_ = os.WriteFile(filepath.Join(os.TempDir(), file), []byte("now"), 0o600)
	time.Sleep(time.Hour)
}

func roofline() arch.Provider {
	p, err := example.Provider()
	if err != nil {
		panic(err)
	}
	return p
}

// moody is a provider whose estimates pass through a function.
type moody struct {
	arch.Provider
	change func(est []arch.Estimate, p gemm.Problem)
}

func (m moody) Open(ctx context.Context, r arch.OpenRequest) (arch.Architecture, error) {
	a, err := m.Provider.Open(ctx, r)
	if err != nil {
		return nil, err
	}
	return moodyArch{a.(fit.Tunable), m.change}, nil
}

type moodyArch struct {
	fit.Tunable
	change func(est []arch.Estimate, p gemm.Problem)
}

func (m moodyArch) Estimate(ctx context.Context, dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config) error {
	err := m.Tunable.Estimate(ctx, dst, p, cfgs)
	if err == nil && len(dst) > 0 {
		m.change(dst, p)
	}
	return err
}
