// Package goplugin serves and starts plugins with hashicorp/go-plugin, whose handshake the protocol has, for tests:
// hosts and plugins that use it work with this repository's.
package goplugin

import (
	"context"
	"os/exec"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/origami-gemm/origami/sdk/wire"
)

// name is the name under which go-plugin dispenses the one connection of a plugin.
const name = "origami"

var handshake = plugin.HandshakeConfig{MagicCookieKey: wire.EnvCookie, MagicCookieValue: wire.Cookie}

// glue is what go-plugin asks for: it registers the services on one side and hands out the connection on the other.
type glue struct {
	plugin.NetRPCUnsupportedPlugin
	service *wire.Service
}

func (g *glue) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	g.service.Register(s)
	return nil
}

func (g *glue) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

func plugins(version int, service *wire.Service) map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{version: {name: &glue{service: service}}}
}

// Serve serves a plugin of a version of the wire protocol, with further options of the server, until the host ends it.
func Serve(version int, service *wire.Service, options ...grpc.ServerOption) {
	plugin.Serve(&plugin.ServeConfig{HandshakeConfig: handshake, VersionedPlugins: plugins(version, service),
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server { return grpc.NewServer(append(o, options...)...) }})
}

// Client starts a plugin. Its Client method connects, and Connection returns the connection.
func Client(command *exec.Cmd) *plugin.Client {
	return plugin.NewClient(&plugin.ClientConfig{HandshakeConfig: handshake,
		VersionedPlugins: plugins(wire.ProtocolVersion, nil), AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		Cmd: command, AutoMTLS: true, Logger: hclog.NewNullLogger()})
}

// Connection connects to a plugin that was started.
func Connection(c *plugin.Client) (grpc.ClientConnInterface, error) {
	protocol, err := c.Client()
	if err != nil {
		return nil, err
	}
	conn, err := protocol.Dispense(name)
	if err != nil {
		return nil, err
	}
	return conn.(grpc.ClientConnInterface), nil
}
