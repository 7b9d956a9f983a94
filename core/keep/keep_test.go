package keep

import (
	"errors"
	"github.com/origami-gemm/origami/internal/testing/must"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Of the values of a process the ones used longest ago go, and the sum stays within the budget.
func TestBudget(t *testing.T) {
	defer Drop()
	var values [64]Value[int]
	for i := range values {
		values[i].Store(&i, Budget/16)
		values[0].Load() // it is used all along
	}
	held := 0
	for i := range values {
		if values[i].Load() != nil {
			held++
		}
	}
	if held != 16 || values[0].Load() == nil || values[63].Load() == nil || values[1].Load() != nil {
		t.Errorf("%d values of a sixteenth are held, the first %v", held, values[0].Load())
	}
	for i := range 100 { // a value in place of another takes its room
		values[0].Store(&i, Budget/16)
	}
	must.That(t, values[63].Load() != nil && room.bytes == Budget,
		"the last one made room, %d bytes are held", room.bytes)
	large := 1
	values[5].Store(&large, 2*Budget)
	must.That(t, values[5].Load() == &large && values[0].Load() == nil,
		"a value over the budget stays alone until the next")
	Drop()
	must.That(t, values[5].Load() == nil && room.bytes == 0, "%d bytes are held", room.bytes)
}

// The value of a key is made once, however many ask, and a failure is not kept.
func TestMap(t *testing.T) {
	defer Drop()
	var m Map[int, int]
	calls := 0
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			v, err := m.Get(1, func() (*int, int, error) { calls++; return &calls, 8, nil })
			must.That(t, err == nil && v == &calls, "%v %v", v, err)
		})
	}
	group.Wait()
	must.Equal(t, calls, 1)
	failed := errors.New("failed")
	for range 2 {
		_, err := m.Get(2, func() (*int, int, error) { calls++; return nil, 0, failed })
		must.That(t, errors.Is(err, failed), "%v", err)
	}
	must.Equal(t, calls, 3)
	for i := range 10 * mostSlots {
		must.Get(m.Get(i, func() (*int, int, error) { return &i, Budget / 16, nil }))(t)
	}
	must.That(t, len(m.slots) <= mostSlots, "%d keys are held", len(m.slots))
}

// A process that answers no more questions lets go of everything, and not while one is being answered.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer Drop()
		var v Value[int]
		one := 1
		v.Store(&one, 8)
		Asked()()
		long := Asked()
		time.Sleep(5 * Rest)
		synctest.Wait()
		must.That(t, v.Load() != nil, "it is gone while a question is being answered")
		long()
		time.Sleep(2*Rest + time.Second)
		synctest.Wait()
		must.That(t, v.Load() == nil && room.bytes == 0, "it is still there")
		Asked()() // it waits again
		v.Store(&one, 8)
		time.Sleep(2*Rest + time.Second)
		synctest.Wait()
		must.That(t, v.Load() == nil, "it is there after another question")
	})
}
