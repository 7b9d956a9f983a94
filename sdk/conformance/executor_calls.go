package conformance

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/origami-gemm/origami/core/exec"
)

func checkCancelMeasure(ctx context.Context, _ *subject, found *findings, b *bench) error {
	k, _, err := b.compile(ctx, b.Kernels[0], small)
	if err != nil {
		return err
	}
	for _, after := range []time.Duration{0, 5 * time.Millisecond} {
		cancelled, cancel := context.WithCancel(ctx)
		if after == 0 {
			cancel()
		}
		stop := time.AfterFunc(after, cancel)
		begin := time.Now()
		err := k.Measure(cancelled, exec.MeasureOptions{}, func(exec.Sample) bool { return true })
		took := time.Since(begin) - after
		stop.Stop()
		cancel()
		if took > promptly {
			found.add("Measure returns %v after it was cancelled", took.Round(time.Millisecond))
		}
		if !errors.Is(err, context.Canceled) {
			found.add("Measure, cancelled after %v, ends with %v", after, err)
		}
	}
	again, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	other, _, err := b.compile(again, b.Kernels[0], small)
	if err == nil {
		err = measure(again, other, exec.MeasureOptions{}, 3)
		found.release(other)
	}
	if err != nil {
		found.add("afterwards: %s", err)
	}
	found.release(k) // last, because the cancelled measurement may still be running
	return nil
}

func checkConcurrentKernels(ctx context.Context, s *subject, found *findings, b *bench) error {
	var wg sync.WaitGroup
	const workers = 4
	for w := range workers {
		wg.Go(func() {
			p := small
			p.M += 64 * w
			k, c, err := b.compile(ctx, b.Kernels[0], p)
			if err == nil {
				if n, checkErr := k.Check(ctx); checkErr != nil || !n.OK() {
					found.add("%s of %s, %d at once: the result is %+v (%v)", c, p, workers, n, checkErr)
				}
				if err := measure(ctx, k, exec.MeasureOptions{}, 10); err != nil {
					found.add("%s of %s, %d at once: %s", c, p, workers, err)
				}
				found.release(k)
			} else {
				found.add("%d at once: %s", workers, err)
			}
		})
	}
	wg.Wait()
	return nil
}

func checkEnvironment(ctx context.Context, _ *subject, found *findings, b *bench) error {
	devices, err := b.Devices(ctx)
	if err != nil {
		return err
	}
	for i := range devices {
		e, err := b.Environment(ctx, i)
		if err != nil {
			found.add("device %d: %s", i, err)
			continue
		}
		if e.Clock != 0 && (e.Clock < 1e6 || e.Clock > 1e11) {
			found.add("device %d: a clock of %v Hz is not between 1 MHz and 100 GHz", i, float64(e.Clock))
		}
		if e.PowerWatts < 0 || e.PowerWatts > 1e5 || e.PowerLimitWatts < 0 || e.PowerLimitWatts > 1e5 {
			found.add("device %d: %v W of %v W", i, e.PowerWatts, e.PowerLimitWatts)
		}
		if e.TemperatureC < -100 || e.TemperatureC > 200 {
			found.add("device %d: a temperature of %v °C", i, e.TemperatureC)
		}
	}
	return nil
}
