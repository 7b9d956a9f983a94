package verb

import "context"

// UntilCancelled returns what compute does, or the context's error as soon as it is cancelled: for arithmetic and
// drawing that take seconds and do not look at a context. After a cancellation the process ends, and compute with it.
func UntilCancelled[T any](ctx context.Context, compute func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := compute()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
