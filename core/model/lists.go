package model

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/origami-gemm/origami/core/arch"
	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/keep"
)

// Lists are the lists of configurations that were estimated last, with what a model computes of each before it knows
// the sizes of a problem. K is what that depends on. The zero Lists is ready.
type Lists[K comparable, V any] struct {
	mu     sync.Mutex
	lists  map[K]*keep.Value[list[V]]
	shared atomic.Pointer[gemm.Config]
}

type list[V any] struct {
	configs []gemm.Config
	shared  bool
	V       V
}

func (l *list[V]) is(cfgs []gemm.Config) bool {
	if l.shared && &l.configs[0] == &cfgs[0] {
		return len(l.configs) == len(cfgs)
	}
	return slices.Equal(l.configs, cfgs)
}

// Share says that nobody changes a list, which need not be compared with itself.
func (l *Lists[K, V]) Share(cfgs []gemm.Config) {
	if len(cfgs) > 0 {
		l.shared.Store(&cfgs[0])
	}
}

// Get returns what is known of a list with configurations. If it is not the last of its key, prepare fills it, and
// returns how many bytes that takes.
func (l *Lists[K, V]) Get(key K, cfgs []gemm.Config, prepare func(v *V) (bytes int, err error)) (*V, error) {
	l.mu.Lock()
	at := l.lists[key]
	if at == nil {
		if at = (&keep.Value[list[V]]{}); l.lists == nil {
			l.lists = map[K]*keep.Value[list[V]]{}
		}
		l.lists[key] = at
	}
	l.mu.Unlock()
	if known := at.Load(); known != nil && known.is(cfgs) {
		return &known.V, nil
	}
	made := &list[V]{configs: cfgs, shared: l.shared.Load() == &cfgs[0]}
	if !made.shared {
		made.configs = slices.Clone(cfgs)
	}
	bytes, err := prepare(&made.V)
	if err != nil {
		return nil, err
	}
	at.Store(made, bytes+len(cfgs)*int(unsafe.Sizeof(gemm.Config{})))
	return &made.V, nil
}

// FewConfigs is up to how many configurations are prepared in passing.
const FewConfigs = 64

// Preparer is an Evaluation that prepares configurations before it knows the sizes of a problem.
type Preparer[K comparable, V any] interface {
	Evaluation
	// Key is what prepared configurations depend on, for the problem of the evaluation.
	Key() K
	// Prepare fills v with what is known of a configuration without the sizes.
	Prepare(v *V, c *gemm.Config)
	// Use moves to a prepared configuration, as Config does.
	Use(v *V, c *gemm.Config) arch.Reason
}

// EstimateList estimates configurations as Model.Estimate does. Each of a long list is checked and prepared for its key
// once.
func EstimateList[K comparable, V any](
	ctx context.Context, m *Model, l *Lists[K, []V], dst []arch.Estimate, p gemm.Problem, cfgs []gemm.Config,
) error {
	if len(cfgs) <= FewConfigs {
		return m.Estimate(ctx, dst, p, cfgs)
	}
	if err := m.Supports(&p, cfgs[0]); err != nil { // the others are of the same family, or Check has them
		return err
	}
	if err := m.Fits(len(dst), len(cfgs)); err != nil {
		return err
	}
	evaluation := m.begin(p)
	defer m.evaluations.Put(evaluation)
	e := evaluation.(Preparer[K, V])
	list, err := l.Get(e.Key(), cfgs, func(list *[]V) (int, error) {
		*list = make([]V, len(cfgs))
		for i := range *list {
			if err := m.Check(&cfgs[i]); err != nil {
				return 0, err
			}
			e.Prepare(&(*list)[i], &cfgs[i])
		}
		return len(cfgs) * int(unsafe.Sizeof((*list)[0])), nil
	})
	if err != nil {
		return err
	}
	for i := range *list {
		if reason := e.Use(&(*list)[i], &cfgs[i]); reason != "" {
			dst[i] = arch.Estimate{Reject: reason}
		} else {
			dst[i] = e.Estimate()
		}
	}
	return nil
}
