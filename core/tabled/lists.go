package tabled

import (
	"slices"
	"sync"
	"unsafe"

	"github.com/origami-gemm/origami/core/gemm"
	"github.com/origami-gemm/origami/core/keep"
)

// Lists are the lists of configurations that were estimated last, with what a model computes of each before it knows the
// sizes of a problem. K is what that depends on. The zero Lists is ready.
type Lists[K comparable, V any] struct {
	mu    sync.Mutex
	lists map[K]*keep.Value[list[V]]
}

type list[V any] struct {
	configs []gemm.Config
	values  []V
}

// Get returns the values of a list. If it is not the last of its key, each makes them; bytes is what they take besides.
func (l *Lists[K, V]) Get(
	key K, cfgs []gemm.Config, each func(v *V, c *gemm.Config) (bytes int, err error),
) ([]V, error) {
	l.mu.Lock()
	at := l.lists[key]
	if at == nil {
		if at = (&keep.Value[list[V]]{}); l.lists == nil {
			l.lists = map[K]*keep.Value[list[V]]{}
		}
		l.lists[key] = at
	}
	l.mu.Unlock()
	if known := at.Load(); known != nil && slices.Equal(known.configs, cfgs) {
		return known.values, nil
	}
	made := &list[V]{slices.Clone(cfgs), make([]V, len(cfgs))}
	size := len(cfgs) * int(unsafe.Sizeof(gemm.Config{})+unsafe.Sizeof(made.values[0]))
	for i := range cfgs {
		bytes, err := each(&made.values[i], &made.configs[i])
		if err != nil {
			return nil, err
		}
		size += bytes
	}
	at.Store(made, size)
	return made.values, nil
}
