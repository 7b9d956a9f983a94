// Package wire puts the interfaces of core/arch and core/exec on gRPC: the client, the server, and the conversions
// between core types and protobuf, each in its own file. Host code and plugin code see only the plain interfaces.
//
// The process of an architecture plugin is a cache: whatever it holds, open architectures and configuration lists, is
// named by its content and can be sent again. The client does so when the plugin says that something is missing, so a
// restarted plugin carries on where the old one stopped, and no caller notices. The process of an executor plugin
// holds compiled kernels, which are gone when it is; the client says so and leaves it to its caller to compile again.
package wire

import "math/bits"

// Sizes cross the wire as 64-bit integers; on a platform with smaller ints they would wrap silently.
var _ [bits.UintSize/64 - 1]struct{}
