// A small agent on grpc-go: runs one container until it ends well, anew after each crash.
//
//	agent SOCKET
//
// Prints one line of JSON for each thing it has seen.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"time"

	cri "cri/v1"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

func tell(what map[string]interface{}) {
	line, _ := json.Marshal(what)
	os.Stdout.Write(append(line, '\n'))
}

func failed(method string, err error) {
	answer := status.Convert(err)
	tell(map[string]interface{}{
		"failed": method, "code": answer.Code().String(), "details": answer.Message(),
	})
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	connection, err := grpc.Dial("unix:"+os.Args[1], grpc.WithInsecure())
	must(err)
	defer connection.Close()
	client := cri.NewRuntimeServiceClient(connection)
	whole, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	short, stop := context.WithTimeout(whole, 300*time.Millisecond)
	_, err = client.Version(short, &cri.VersionRequest{})
	stop()
	failed("Version", err)
	_, err = client.ContainerStatus(whole, &cri.ContainerStatusRequest{ContainerId: "nothing"})
	failed("ContainerStatus", err)

	events, err := client.GetContainerEvents(whole, &cri.GetEventsRequest{})
	must(err)
	pod := &cri.PodSandboxConfig{
		Metadata: &cri.PodSandboxMetadata{Name: "shop", Uid: "u1", Namespace: "default"},
	}
	sandbox, err := client.RunPodSandbox(whole, &cri.RunPodSandboxRequest{Config: pod})
	must(err)
	for attempt, code := uint32(0), int32(-1); code != 0; attempt++ {
		created, err := client.CreateContainer(whole, &cri.CreateContainerRequest{
			PodSandboxId:  sandbox.PodSandboxId,
			SandboxConfig: pod,
			Config: &cri.ContainerConfig{
				Metadata: &cri.ContainerMetadata{Name: "web", Attempt: attempt},
				Image:    &cri.ImageSpec{Image: "localhost/busybox:1"},
			},
		})
		must(err)
		id := created.ContainerId
		_, err = client.StartContainer(whole, &cri.StartContainerRequest{ContainerId: id})
		must(err)
		for {
			event, err := events.Recv()
			must(err)
			stopped := event.ContainerEventType == cri.ContainerEventType_CONTAINER_STOPPED_EVENT
			if stopped && event.ContainerId == id {
				break
			}
		}
		answer, err := client.ContainerStatus(whole, &cri.ContainerStatusRequest{ContainerId: id})
		must(err)
		code = answer.Status.ExitCode
		tell(map[string]interface{}{"attempt": attempt, "exit_code": code})
		if code != 0 {
			time.Sleep(200 * time.Millisecond)
		}
	}
}
