//go:build race

package measure_test

// raceDetector makes everything ten times slower: fewer cases show as well what goroutines share.
const raceDetector = true
