// Package keep holds what takes long to compute and can be computed again, such as lists of candidates, while the
// process has room for it. All of it together has one budget. Beyond that, what was used longest ago goes first, as
// soon as nobody uses it.
package keep

import (
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Budget is how many bytes a process keeps, give or take the last value. It is two of the longest lists of candidates
// for each of two questions at once, and a fifth of what a process may take (docs/threat-model.md).
const Budget = 64 << 20

// room is what is kept.
var room struct {
	sync.Mutex
	kept  []dropper // the oldest first
	bytes int
}

// dropper is a kept value of any type.
type dropper interface {
	// spare reports whether the value was used since the last call.
	spare() bool
	// drop lets go of the value, and returns how many bytes it takes: 0 if it is gone already.
	drop() int
}

// Drop lets go of everything.
func Drop() {
	room.Lock()
	defer room.Unlock()
	for _, d := range room.kept {
		d.drop()
	}
	room.kept, room.bytes = nil, 0
}

// add makes room for a value in place of another of its owner, which may be nil.
func add(d, other dropper, bytes int) {
	room.Lock()
	defer room.Unlock()
	if other != nil {
		if n := other.drop(); n > 0 {
			room.bytes -= n
			room.kept = slices.DeleteFunc(room.kept, func(d dropper) bool { return d == other })
		}
	}
	for spared := 0; room.bytes+bytes > Budget && len(room.kept) > 0; {
		oldest := room.kept[0]
		room.kept = room.kept[1:]
		if spared < len(room.kept) && oldest.spare() {
			room.kept = append(room.kept, oldest)
			spared++
			continue
		}
		room.bytes -= oldest.drop()
	}
	room.kept, room.bytes = append(room.kept, d), room.bytes+bytes
}

// Value is a value, or none: any call may find that another one dropped it. The zero Value has none.
type Value[V any] struct{ at atomic.Pointer[entry[V]] }

type entry[V any] struct {
	value atomic.Pointer[V] // nil if it was dropped
	bytes int
	used  atomic.Bool
}

func (e *entry[V]) spare() bool { return e.used.Swap(false) }

func (e *entry[V]) drop() int {
	if e.value.Swap(nil) == nil {
		return 0
	}
	return e.bytes
}

// Load returns the value, nil if there is none.
func (v *Value[V]) Load() *V {
	e := v.at.Load()
	if e == nil {
		return nil
	}
	if !e.used.Load() {
		e.used.Store(true)
	}
	return e.value.Load()
}

// Store keeps a value that takes a number of bytes, in place of the last.
func (v *Value[V]) Store(value *V, bytes int) {
	e := &entry[V]{bytes: bytes}
	e.value.Store(value)
	var other dropper
	if old := v.at.Swap(e); old != nil {
		other = old
	}
	add(e, other, bytes)
}

// Map has values by key. The zero Map is ready.
type Map[K comparable, V any] struct {
	mu    sync.Mutex
	slots map[K]*slot[V]
}

type slot[V any] struct {
	making sync.Mutex
	Value[V]
}

// mostSlots is how many keys a Map has before it forgets those without a value.
const mostSlots = 256

// Get returns the value of a key. If it has none, make makes it, and says how many bytes it takes. Callers with the
// same key wait for each other. An error is not kept.
func (m *Map[K, V]) Get(key K, make func() (*V, int, error)) (*V, error) {
	s := m.slot(key)
	s.making.Lock()
	defer s.making.Unlock()
	if v := s.Load(); v != nil {
		return v, nil
	}
	v, bytes, err := make()
	if err == nil {
		s.Store(v, bytes)
	}
	return v, err
}

func (m *Map[K, V]) slot(key K) *slot[V] {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.slots[key]
	if s == nil {
		if m.slots == nil || len(m.slots) >= mostSlots {
			kept := map[K]*slot[V]{}
			for k, s := range m.slots {
				if s.Load() != nil {
					kept[k] = s
				}
			}
			m.slots = kept
		}
		s = &slot[V]{}
		m.slots[key] = s
	}
	return s
}

// making is a place for each value that is being made.
var making = make(chan struct{}, 2)

// Making calls f when at most one other call of it runs: what is thrown away while a large value is made takes memory
// too. f must not call it.
func Making(f func()) {
	making <- struct{}{}
	defer func() { <-making }()
	f()
}

// Rest is how long a process that answers questions keeps what it needs for the next, at least, and at most twice as
// long.
const Rest = 20 * time.Second

var (
	asking atomic.Int64 // questions that are being answered
	asked  atomic.Int64 // questions so far
	armed  atomic.Bool  // rest is going to be called
)

// Asked says that a question is being answered; the caller calls what it returns at the end. When there was none for
// Rest, the process lets go of everything and gives its memory back.
func Asked() (done func()) {
	asking.Add(1)
	asked.Add(1)
	return answered
}

func answered() {
	asking.Add(-1)
	if armed.CompareAndSwap(false, true) {
		rest(asked.Load())
	}
}

// rest waits until there was no question for Rest, since so many.
func rest(since int64) {
	time.AfterFunc(Rest, func() {
		armed.Store(false) // a question that ends from here on begins to wait itself
		if now := asked.Load(); now != since || asking.Load() > 0 {
			if armed.CompareAndSwap(false, true) {
				rest(now)
			}
			return
		}
		Drop()
		debug.FreeOSMemory()
	})
}
