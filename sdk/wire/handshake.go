package wire

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/origami-gemm/origami/sdk/proto/origami/plugin/v1"
)

// A plugin starts as a plugin of hashicorp/go-plugin does, with any host and plugin that use it. The host sets
// environment variables. The plugin listens at a socket and prints a line about it (see Handshake). Both sides then
// speak gRPC.

// Environment variables that every host sets.
const (
	// EnvCookie has the value Cookie. It is no security feature: a user who starts a plugin by hand gets a hint.
	EnvCookie = "ORIGAMI_PLUGIN"
	Cookie    = "6d9b3c5e1f8247a0b4e2c7d15a90f863"
	// EnvVersions lists the wire protocols that the host speaks, with commas between them.
	EnvVersions = "PLUGIN_PROTOCOL_VERSIONS"
	// EnvSocketDir is the folder for the plugin's socket.
	EnvSocketDir = "PLUGIN_UNIX_SOCKET_DIR"
	// EnvHostCertificate is the host's certificate in PEM. The plugin then accepts no other client, and sends its own
	// in the handshake.
	EnvHostCertificate = "PLUGIN_CLIENT_CERT"
)

// Shutdown asks a plugin to end. It may end before it answers.
func Shutdown(ctx context.Context, plugin grpc.ClientConnInterface) {
	_ = plugin.Invoke(ctx, "/plugin.GRPCController/Shutdown", &pb.InfoRequest{}, &pb.InfoRequest{})
}

// Controller is the service that Shutdown calls. Its messages are empty.
func Controller(stop func()) *grpc.ServiceDesc {
	shutdown := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		stop()
		return &pb.InfoRequest{}, decode(&pb.InfoRequest{})
	}
	return &grpc.ServiceDesc{ServiceName: "plugin.GRPCController", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Shutdown", Handler: shutdown}}}
}

// Output receives what a plugin that is served by go-plugin prints, until the connection ends. Other plugins, those of
// this SDK among them, print to their standard error.
func Output(ctx context.Context, plugin grpc.ClientConnInterface, to io.Writer) {
	stream, err := plugin.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/plugin.GRPCStdio/StreamStdio")
	if err != nil || stream.SendMsg(&pb.InfoRequest{}) != nil || stream.CloseSend() != nil {
		return
	}
	for {
		var part pb.InfoRequest // has no fields: StdioData's stay as they were sent
		if stream.RecvMsg(&part) != nil {
			return
		}
		for rest := []byte(part.ProtoReflect().GetUnknown()); len(rest) > 0; {
			number, kind, n := protowire.ConsumeTag(rest)
			value := rest[n:]
			rest = value[protowire.ConsumeFieldValue(number, kind, value):]
			if number == 2 && kind == protowire.BytesType { // data; 1 says which of the two streams
				text, _ := protowire.ConsumeBytes(value)
				_, _ = to.Write(text)
			}
		}
	}
}

// coreProtocol is the version of the handshake itself.
const coreProtocol = 1

// Handshake is what the first line of a plugin's standard output says, as
// 1|1|unix|/tmp/plugin-dir1/plugin2|grpc|MIIB…: the version of the handshake, the version of the wire protocol, the
// network, the address, the kind of server and the certificate in base64.
type Handshake struct {
	Network, Address string // "unix" or "tcp"
	Certificate      []byte // DER, nil without TLS
}

// String returns the line without its end.
func (h Handshake) String() string {
	return fmt.Sprintf("%d|%d|%s|%s|grpc|%s", coreProtocol, ProtocolVersion, h.Network, h.Address,
		base64.RawStdEncoding.EncodeToString(h.Certificate))
}

// ParseHandshake reads the line.
func ParseHandshake(line string) (Handshake, error) {
	parts := strings.Split(strings.TrimSpace(line), "|")
	switch {
	case len(parts) < 6:
		return Handshake{}, fmt.Errorf("its first line is no handshake: %.100q", line)
	case parts[0] != fmt.Sprint(coreProtocol):
		return Handshake{}, fmt.Errorf("its handshake has version %.20q, this origami speaks %d", parts[0], coreProtocol)
	case parts[1] != fmt.Sprint(ProtocolVersion):
		return Handshake{}, fmt.Errorf("it speaks wire protocol %.20q, this origami speaks %d", parts[1], ProtocolVersion)
	case parts[2] != "unix" && parts[2] != "tcp":
		return Handshake{}, fmt.Errorf("it listens at an unknown network, %.20q", parts[2])
	case parts[4] != "grpc":
		return Handshake{}, fmt.Errorf("it serves %.20q, this origami speaks gRPC", parts[4])
	}
	h := Handshake{Network: parts[2], Address: parts[3]}
	var err error
	if h.Certificate, err = base64.RawStdEncoding.DecodeString(parts[5]); err != nil {
		return Handshake{}, fmt.Errorf("its certificate is not in base64: %w", err)
	}
	return h, nil
}

// Identity is a private key with a certificate, made for one run of a plugin. The key is on P-256: on P-521, which
// go-plugin uses, both sides together need a quarter of the time of a cold command, and gRPC's C core, which serves
// plugins in Python, refuses it.
type Identity struct{ certificate tls.Certificate }

// NewIdentity makes one.
func NewIdentity() (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(now.UnixNano()),
		Subject:               pkix.Name{CommonName: "localhost", Organization: []string{"origami"}},
		DNSNames:              []string{"localhost"},
		NotBefore:             now.Add(-30 * time.Second),
		NotAfter:              now.AddDate(10, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true, // the other side trusts it as its issuer
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &Identity{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}, nil
}

// DER returns the certificate.
func (i *Identity) DER() []byte { return i.certificate.Certificate[0] }

// PEM returns the certificate in the form of EnvHostCertificate.
func (i *Identity) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.DER()}))
}

// ToPlugin is the host's side of a connection: it accepts the plugin that sent this certificate, and no other.
func (i *Identity) ToPlugin(der []byte) (*tls.Config, error) {
	theirs, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("its certificate cannot be read: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(theirs)
	return &tls.Config{Certificates: []tls.Certificate{i.certificate}, MinVersion: tls.VersionTLS12,
		CurvePreferences: []tls.CurveID{tls.X25519}, RootCAs: pool, ServerName: "localhost"}, nil
}

// ToHost is the plugin's side: it accepts the host that has this certificate, in PEM, and no other.
func (i *Identity) ToHost(certificate string) (*tls.Config, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(certificate)) {
		return nil, errors.New(EnvHostCertificate + " is no certificate in PEM")
	}
	return &tls.Config{Certificates: []tls.Certificate{i.certificate}, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, SessionTicketsDisabled: true}, nil
}
