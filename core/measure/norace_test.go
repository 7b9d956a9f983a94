//go:build !race

package measure_test

const raceDetector = false
