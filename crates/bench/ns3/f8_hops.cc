// "F8-hops v1" in ns-3: what `sanloom bench ns3` holds sanloom against.
//
// A core/edge fabric like Figure 8 of the SANSim paper under saturated 32 KB reads, with the least
// that a network simulator must do: point-to-point links, unlimited output queues,
// store-and-forward. No credits, no crossbar, no IP stack, no headers but the two bytes of PPP,
// which are taken off the packet so that the sizes on the wire are those of Fibre Channel.
//
//   E edge switches for hosts, E for devices (default 2), one core; 4 nodes per edge, 2 links from each edge to the core
//   link: 1.7 Gb/s, 250 ns; frames: CMND 92 B, DATA 2108 B, RSP 84 B
//   read: CMND to the device, 44,444 ns of service in order of arrival, then 16 DATA and a RSP; 4 links each way
//   32 reads are always under way on each host; read k of host h begins at 1 + 7h + 61k ns
//
// Check value: E = 2, T = 0.5 s: 12,383 reads, 898,547 frame-hops.
//
// Build: g++ -std=c++17 -O3 -DNDEBUG f8_hops.cc -o f8_hops -lns3-core -lns3-network -lns3-point-to-point
// Run:   ./f8_hops [E [T in seconds]]     prints one line of JSON

#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint32_t NODES_PER_EDGE = 4;
constexpr uint32_t DEPTH = 32;
constexpr uint32_t DATA_FRAMES = 16;
constexpr int64_t SERVICE_NS = 44444;
constexpr uint32_t PPP_BYTES = 2;
constexpr uint32_t CMND_BYTES = 92 - PPP_BYTES;
constexpr uint32_t DATA_BYTES = 2108 - PPP_BYTES;
constexpr uint32_t RSP_BYTES = 84 - PPP_BYTES;
constexpr uint16_t PROTOCOL = 0x0800;
// More than all frames that can be under way.
constexpr uint32_t FRAMES = 1u << 20;

enum Kind : uint8_t
{
    CMND,
    DATA,
    RSP
};

struct Frame
{
    uint16_t host;
    uint16_t device;
    uint8_t isl;
    Kind kind;
};

// Indexed by the packet's uid: cheaper than a tag on the packet.
std::vector<Frame> g_frames(FRAMES);
// Output ports: of hosts and devices up, of edges down and up, of the core down.
std::vector<Ptr<PointToPointNetDevice>> g_hostUp, g_deviceUp;
std::vector<Ptr<PointToPointNetDevice>> g_hostEdgeDown, g_deviceEdgeDown;
std::vector<Ptr<PointToPointNetDevice>> g_hostEdgeUp, g_deviceEdgeUp;
std::vector<Ptr<PointToPointNetDevice>> g_coreToHostEdge, g_coreToDeviceEdge;
std::vector<int64_t> g_busyUntilNs;
uint32_t g_devices = 0;
uint64_t g_hops = 0;
uint64_t g_reads = 0;
uint64_t g_random = 88172645463325252ull;

uint32_t
Random()
{
    g_random ^= g_random << 13;
    g_random ^= g_random >> 7;
    g_random ^= g_random << 17;
    return static_cast<uint32_t>(g_random >> 32);
}

void
SendFrame(const Ptr<PointToPointNetDevice>& port, uint32_t bytes, const Frame& frame)
{
    Ptr<Packet> packet = Create<Packet>(bytes);
    g_frames[packet->GetUid() % FRAMES] = frame;
    port->Send(packet, port->GetBroadcast(), PROTOCOL);
}

void
Issue(uint32_t host)
{
    const uint32_t r = Random();
    const Frame frame{static_cast<uint16_t>(host),
                      static_cast<uint16_t>((r >> 1) % g_devices),
                      static_cast<uint8_t>(r & 1),
                      CMND};
    SendFrame(g_hostUp[host], CMND_BYTES, frame);
}

void
Reply(Frame frame)
{
    frame.kind = DATA;
    for (uint32_t i = 0; i < DATA_FRAMES; i++)
    {
        SendFrame(g_deviceUp[frame.device], DATA_BYTES, frame);
    }
    frame.kind = RSP;
    SendFrame(g_deviceUp[frame.device], RSP_BYTES, frame);
}

const Frame&
Arrived(const Ptr<const Packet>& packet)
{
    g_hops++;
    return g_frames[packet->GetUid() % FRAMES];
}

bool
Forward(const Ptr<PointToPointNetDevice>& port, const Ptr<const Packet>& packet)
{
    return port->Send(packet->Copy(), port->GetBroadcast(), PROTOCOL);
}

bool
AtHostEdge(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address&)
{
    const Frame& frame = Arrived(packet);
    return frame.kind == CMND ? Forward(g_hostEdgeUp[frame.host / NODES_PER_EDGE * 2 + frame.isl], packet)
                              : Forward(g_hostEdgeDown[frame.host], packet);
}

bool
AtCore(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address&)
{
    const Frame& frame = Arrived(packet);
    return frame.kind == CMND ? Forward(g_coreToDeviceEdge[frame.device / NODES_PER_EDGE * 2 + frame.isl], packet)
                              : Forward(g_coreToHostEdge[frame.host / NODES_PER_EDGE * 2 + frame.isl], packet);
}

bool
AtDeviceEdge(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address&)
{
    const Frame& frame = Arrived(packet);
    return frame.kind == CMND ? Forward(g_deviceEdgeDown[frame.device], packet)
                              : Forward(g_deviceEdgeUp[frame.device / NODES_PER_EDGE * 2 + frame.isl], packet);
}

bool
AtDevice(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address&)
{
    const Frame frame = Arrived(packet);
    const int64_t now = Simulator::Now().GetNanoSeconds();
    int64_t& busyUntil = g_busyUntilNs[frame.device];
    busyUntil = std::max(busyUntil, now) + SERVICE_NS;
    Simulator::Schedule(NanoSeconds(busyUntil - now), &Reply, frame);
    return true;
}

bool
AtHost(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t, const Address&)
{
    const Frame& frame = Arrived(packet);
    if (frame.kind == RSP)
    {
        g_reads++;
        Issue(frame.host);
    }
    return true;
}

using AtEnd = bool (*)(Ptr<NetDevice>, Ptr<const Packet>, uint16_t, const Address&);

// Joins two nodes; frames that arrive at them go to `atA` and `atB`. Returns the port at `a`, then the one at `b`.
std::pair<Ptr<PointToPointNetDevice>, Ptr<PointToPointNetDevice>>
Join(const Ptr<Node>& a, const Ptr<Node>& b, AtEnd atA, AtEnd atB)
{
    Ptr<PointToPointChannel> channel = CreateObject<PointToPointChannel>();
    channel->SetAttribute("Delay", TimeValue(NanoSeconds(250)));
    auto port = [&](const Ptr<Node>& node, AtEnd at) {
        Ptr<PointToPointNetDevice> device = CreateObject<PointToPointNetDevice>();
        device->SetAddress(Mac48Address::Allocate());
        device->SetDataRate(DataRate(1700000000ull));
        Ptr<Queue<Packet>> queue = CreateObject<DropTailQueue<Packet>>();
        queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, 1000000000u));
        device->SetQueue(queue);
        node->AddDevice(device);
        device->Attach(channel);
        // After AddDevice, which sets one of its own.
        device->SetReceiveCallback(MakeCallback(at));
        return device;
    };
    Ptr<PointToPointNetDevice> first = port(a, atA);
    Ptr<PointToPointNetDevice> second = port(b, atB);
    return {first, second};
}

void
Build(uint32_t edges)
{
    Ptr<Node> core = CreateObject<Node>();
    g_devices = edges * NODES_PER_EDGE;
    g_busyUntilNs.assign(g_devices, 0);
    for (uint32_t edge = 0; edge < edges; edge++)
    {
        Ptr<Node> hostEdge = CreateObject<Node>();
        Ptr<Node> deviceEdge = CreateObject<Node>();
        for (uint32_t isl = 0; isl < 2; isl++)
        {
            auto hosts = Join(hostEdge, core, &AtHostEdge, &AtCore);
            g_hostEdgeUp.push_back(hosts.first);
            g_coreToHostEdge.push_back(hosts.second);
            auto devices = Join(deviceEdge, core, &AtDeviceEdge, &AtCore);
            g_deviceEdgeUp.push_back(devices.first);
            g_coreToDeviceEdge.push_back(devices.second);
        }
        for (uint32_t node = 0; node < NODES_PER_EDGE; node++)
        {
            auto host = Join(CreateObject<Node>(), hostEdge, &AtHost, &AtHostEdge);
            g_hostUp.push_back(host.first);
            g_hostEdgeDown.push_back(host.second);
            auto device = Join(CreateObject<Node>(), deviceEdge, &AtDevice, &AtDeviceEdge);
            g_deviceUp.push_back(device.first);
            g_deviceEdgeDown.push_back(device.second);
        }
    }
}

double
CpuSeconds()
{
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

} // namespace

int
main(int argc, char* argv[])
{
    const uint32_t edges = argc > 1 ? static_cast<uint32_t>(std::strtoul(argv[1], nullptr, 10)) : 2;
    const double duration = argc > 2 ? std::strtod(argv[2], nullptr) : 0.5;
    if (edges < 1 || edges > 4096 || !(duration > 0.0))
    {
        std::fprintf(stderr, "usage: f8_hops [edges per side, 1 to 4096 [seconds]]\n");
        return 2;
    }
    Build(edges);
    for (uint32_t host = 0; host < g_devices; host++)
    {
        for (uint32_t k = 0; k < DEPTH; k++)
        {
            Simulator::Schedule(NanoSeconds(1 + 7 * host + 61 * k), &Issue, host);
        }
    }
    Simulator::Stop(Seconds(duration));
    const double begin = CpuSeconds();
    Simulator::Run();
    const double cpu = CpuSeconds() - begin;
    std::printf("{\"ios\":%llu,\"frame_hops\":%llu,\"events\":%llu,\"cpu_s\":%.6f,\"frame_hops_per_cpu_s\":%.0f}\n",
                static_cast<unsigned long long>(g_reads),
                static_cast<unsigned long long>(g_hops),
                static_cast<unsigned long long>(Simulator::GetEventCount()),
                cpu,
                static_cast<double>(g_hops) / cpu);
    Simulator::Destroy();
    return 0;
}
