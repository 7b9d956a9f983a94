// Package goplugin serves and starts plugins with hashicorp/go-plugin, whose handshake the protocol has, for tests:
// hosts and plugins that use it work with this repository's.
package goplugin

import (
	"os/exec"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/origami-gemm/origami/sdk/wire"
)

// Serve serves a plugin of a version of the wire protocol, with further options of the server, until the host ends it.
func Serve(version int, service *wire.Service, options ...grpc.ServerOption) {
	plugin.Serve(&plugin.ServeConfig{HandshakeConfig: wire.Handshake,
		VersionedPlugins: map[int]plugin.PluginSet{version: wire.Plugins(service)[wire.ProtocolVersion]},
		GRPCServer:       func(o []grpc.ServerOption) *grpc.Server { return grpc.NewServer(append(o, options...)...) }})
}

// Client starts a plugin. Its Client method connects, and Connection returns the connection.
func Client(command *exec.Cmd) *plugin.Client {
	return plugin.NewClient(&plugin.ClientConfig{HandshakeConfig: wire.Handshake,
		VersionedPlugins: wire.Plugins(nil), AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd: command, AutoMTLS: true, Logger: hclog.NewNullLogger()})
}

// Connection connects to a plugin that was started.
func Connection(c *plugin.Client) (grpc.ClientConnInterface, error) {
	protocol, err := c.Client()
	if err != nil {
		return nil, err
	}
	conn, err := protocol.Dispense(wire.PluginName)
	if err != nil {
		return nil, err
	}
	return conn.(grpc.ClientConnInterface), nil
}
