// A stand-in for csi-node-driver-registrar, for the lab alone.
//
// The stock program cannot be had as a Go module, so the lab packs this one into the image that carries the stock
// program's name. It takes the same flags and does the same one thing: it asks a CSI driver for its name and tells
// the kubelet where the driver's socket is. Real clusters run the stock program.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

var (
	csiAddress       = flag.String("csi-address", "/run/csi/socket", "the driver's socket, as seen from here")
	kubeletPath      = flag.String("kubelet-registration-path", "", "the driver's socket, as the kubelet sees it")
	registrationPath = flag.String("plugin-registration-path", "/registration", "the folder that the kubelet watches")
	operationTimeout = flag.Duration("operation-timeout", time.Second, "how long one call to the driver may take")
	httpEndpoint     = flag.String("http-endpoint", "", "where /healthz is served; nowhere if empty")

	// Flags of the stock program that have no effect here.
	_ = flag.Duration("connection-timeout", 0, "no effect")
	_ = flag.Duration("timeout", 0, "no effect")
	_ = flag.String("metrics-address", "", "no effect")
	_ = flag.String("metrics-path", "/metrics", "no effect")
	_ = flag.Bool("enable-pprof", false, "no effect")
)

func main() {
	klog.InitFlags(nil)
	flag.Parse()
	if *kubeletPath == "" {
		klog.Exit("--kubelet-registration-path must be given")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		klog.Exit(err)
	}
}

func run(ctx context.Context) error {
	name, err := driverName(ctx)
	if err != nil {
		return err
	}
	klog.InfoS("The driver answers", "name", name)
	socket := filepath.Join(*registrationPath, name+"-reg.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove what an earlier run has left: %w", err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return fmt.Errorf("listen for the kubelet: %w", err)
	}
	if *httpEndpoint != "" {
		go serveHealth(socket)
	}
	return serve(ctx, listener, &registrar{name: name})
}

// driverName asks the driver, which may start later than this program, until it answers.
func driverName(ctx context.Context) (string, error) {
	connection, err := grpc.NewClient("unix://"+*csiAddress, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", fmt.Errorf("connect to the driver: %w", err)
	}
	defer connection.Close()
	identity := csi.NewIdentityClient(connection)
	for {
		call, cancel := context.WithTimeout(ctx, *operationTimeout)
		info, err := identity.GetPluginInfo(call, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
		cancel()
		if err == nil {
			return info.GetName(), nil
		}
		klog.InfoS("The driver does not answer yet", "socket", *csiAddress, "err", err)
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// serve answers the kubelet until the context ends or a registration has failed. Closing the listener removes the
// socket, by which the kubelet knows that the driver has gone.
func serve(ctx context.Context, listener net.Listener, service *registrar) error {
	server := grpc.NewServer()
	registration.RegisterRegistrationServer(server, service)
	stopped := context.AfterFunc(ctx, server.GracefulStop)
	defer stopped()
	return server.Serve(listener)
}

func serveHealth(socket string) {
	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(socket); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	klog.Exit(http.ListenAndServe(*httpEndpoint, nil))
}

type registrar struct {
	registration.UnimplementedRegistrationServer
	name string
}

func (r *registrar) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type:              registration.CSIPlugin,
		Name:              r.name,
		Endpoint:          *kubeletPath,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (r *registrar) NotifyRegistrationStatus(
	_ context.Context, status *registration.RegistrationStatus,
) (*registration.RegistrationStatusResponse, error) {
	if !status.PluginRegistered {
		// The container is started again, and with it another try.
		klog.Exitf("the kubelet refuses the driver: %s", status.Error)
	}
	klog.InfoS("The kubelet has registered the driver", "name", r.name)
	return &registration.RegistrationStatusResponse{}, nil
}
