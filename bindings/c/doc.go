// Command c is liborigami, a C library of the built-in models, for programs that want a pick without a process. It is
// built with go build -buildmode=c-shared, as `make lib` does. origami.h is its interface; bindings/python binds it.
//
// service.go answers questions, exports.go is what C can call of it, origami.c has the functions of origami.h, and
// launch.c
// loads and launches kernels.
package main

func main() {} // a C library has none, but a package main must
