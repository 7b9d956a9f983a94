// Command c is liborigami, a C library of the built-in models, for programs that want a pick without a process. It is
// built with go build -buildmode=c-shared, as `make lib` does. origami.h is its interface; bindings/python binds it.
//
// models.go is the library in Go, exports.go what C can call of it, and origami.c the functions of origami.h, which
// need cgo.
package main

func main() {} // a C library has none, but a package main must
