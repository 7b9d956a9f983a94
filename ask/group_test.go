package ask

import (
	"fmt"
	"github.com/origami-gemm/origami/internal/testing/must"
	"strings"
	"testing"
)

// A panic of one function is told to whoever waits, when all are done, with the place where it was.
func TestGroup(t *testing.T) {
	var g Group
	var done [3]bool
	for i := range done {
		g.Go(func() {
			done[i] = true
			if i == 1 {
				panic("a fault")
			}
		})
	}
	defer func() {
		fault := fmt.Sprint(recover())
		must.That(t, strings.HasPrefix(fault, "a fault\n") && strings.Contains(fault, "group_test.go"), "%v", fault)
		must.Equal(t, done, [3]bool{true, true, true})
	}()
	g.Wait()
	t.Error("the panic is lost")
}
