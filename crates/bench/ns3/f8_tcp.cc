// TCP through the core/edge fabric in ns-3: what `sanloom bench sim --plane ethernet` holds sanloom against.
//
// Standard input describes the lab, so both simulators have the same cables, paths, rates, delays and connections. Nodes
// have ns-3's IPv4 and TCP. Switches do the least that a network simulator must do: they look up the output port of a
// packet by its addresses, and set CE if the queue of that port is too long. They have no IP stack, no traffic control
// layer, no shared memory and no limit of their queues.
//
// Input, one statement a line, times in ps, stations numbered with the nodes first:
//   lab NODES SWITCHES BYTE_PS GAP_BYTES TAIL_BYTES MARK_BYTES MSS BUFFER_BYTES REQUEST_BYTES ANSWER_BYTES DEPTH
//   link STATION PORT STATION PORT DELAY
//   connection HOST DEVICE
//   route SWITCH FROM_NODE TO_NODE PORT
//
// GAP_BYTES follow each packet on the line, TAIL_BYTES are those of them that must arrive before it can be forwarded.
//
// Build: g++ -std=c++17 -O3 -DNDEBUG f8_tcp.cc -o f8_tcp -lns3-core -lns3-network -lns3-point-to-point -lns3-internet
// Run:   ./f8_tcp SECONDS < LAB     prints one line of JSON

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <map>
#include <string>
#include <vector>

using namespace ns3;

namespace
{

constexpr uint16_t PORT = 3260;
constexpr uint16_t IPV4 = 0x0800;
constexpr uint32_t FIRST_ADDRESS = 0x0a000001;

struct Lab
{
    uint32_t nodes = 0;
    uint32_t switches = 0;
    uint64_t bytePs = 0;
    uint64_t gapBytes = 0;
    uint64_t tailBytes = 0;
    uint32_t markBytes = 0;
    uint32_t mss = 0;
    uint32_t bufferBytes = 0;
    uint32_t requestBytes = 0;
    uint32_t answerBytes = 0;
    uint32_t depth = 0;
};

Lab g_lab;
// Ports of each station.
std::vector<std::vector<Ptr<PointToPointNetDevice>>> g_ports;
// Output port of each switch by the numbers of the sending and the receiving node.
std::vector<std::vector<Ptr<PointToPointNetDevice>>> g_routes;
std::vector<Ptr<Node>> g_stations;
uint64_t g_reads = 0;
uint64_t g_hops = 0;
uint64_t g_sent = 0;
uint64_t g_delivered = 0;

// One end of a connection; a message is a request or an answer.
struct End
{
    uint64_t consumed = 0;
    uint64_t complete = 0;

    // Consumes what has arrived, and returns the number of complete messages.
    uint64_t Read(const Ptr<Socket>& socket, uint64_t messageBytes)
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            consumed += packet->GetSize();
        }
        const uint64_t messages = (consumed - complete) / messageBytes;
        complete += messages * messageBytes;
        return messages;
    }
};

std::map<Ptr<Socket>, End> g_ends;

void
Write(const Ptr<Socket>& socket, uint64_t bytes)
{
    if (bytes > 0 && socket->Send(Create<Packet>(static_cast<uint32_t>(bytes))) != static_cast<int>(bytes))
    {
        std::fprintf(stderr, "a send buffer does not hold all requests in flight\n");
        std::exit(1);
    }
}

void
AnswerArrived(End* end, Ptr<Socket> socket)
{
    const uint64_t answers = end->Read(socket, g_lab.answerBytes);
    g_reads += answers;
    Write(socket, answers * g_lab.requestBytes);
}

void
RequestArrived(End* end, Ptr<Socket> socket)
{
    Write(socket, end->Read(socket, g_lab.requestBytes) * g_lab.answerBytes);
}

void
Connected(Ptr<Socket> socket)
{
    Write(socket, static_cast<uint64_t>(g_lab.depth) * g_lab.requestBytes);
}

void
Refused(Ptr<Socket>)
{
    std::fprintf(stderr, "a connection was refused\n");
    std::exit(1);
}

void
Accepted(Ptr<Socket> socket, const Address&)
{
    socket->SetRecvCallback(MakeBoundCallback(&RequestArrived, &g_ends[socket]));
}

void
Sent(Ptr<const Packet>)
{
    g_sent++;
}

void
Delivered(Ptr<const Packet>)
{
    g_hops++;
    g_delivered++;
}

bool
Forward(uint32_t number, Ptr<NetDevice>, Ptr<const Packet> arrived, uint16_t, const Address&)
{
    g_hops++;
    Ptr<Packet> packet = arrived->Copy();
    Ipv4Header header;
    packet->PeekHeader(header);
    const uint32_t from = header.GetSource().Get() - FIRST_ADDRESS;
    const uint32_t to = header.GetDestination().Get() - FIRST_ADDRESS;
    const Ptr<PointToPointNetDevice>& port = g_routes[number][from * g_lab.nodes + to];
    if (header.GetEcn() != Ipv4Header::ECN_NotECT && port->GetQueue()->GetNBytes() >= g_lab.markBytes)
    {
        packet->RemoveHeader(header);
        header.SetEcn(Ipv4Header::ECN_CE);
        packet->AddHeader(header);
    }
    return port->Send(packet, port->GetBroadcast(), IPV4);
}

Ptr<PointToPointNetDevice>
MakePort(uint32_t station, uint32_t number, const Ptr<PointToPointChannel>& channel)
{
    Ptr<PointToPointNetDevice> device = CreateObject<PointToPointNetDevice>();
    device->SetAddress(Mac48Address::Allocate());
    device->SetDataRate(DataRate(8'000'000'000'000ull / g_lab.bytePs));
    device->SetInterframeGap(PicoSeconds(g_lab.gapBytes * g_lab.bytePs));
    Ptr<Queue<Packet>> queue = CreateObject<DropTailQueue<Packet>>();
    queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, 1000000000u));
    device->SetQueue(queue);
    g_stations[station]->AddDevice(device);
    device->Attach(channel);
    auto& ports = g_ports[station];
    if (ports.size() <= number)
    {
        ports.resize(number + 1);
    }
    ports[number] = device;
    return device;
}

// Gives a node its address, and counts its packets.
void
StartNode(uint32_t number, const Ptr<PointToPointNetDevice>& device)
{
    Ptr<Ipv4> ipv4 = g_stations[number]->GetObject<Ipv4>();
    const uint32_t interface = ipv4->AddInterface(device);
    ipv4->AddAddress(interface, Ipv4InterfaceAddress(Ipv4Address(FIRST_ADDRESS + number), Ipv4Mask("255.0.0.0")));
    ipv4->SetUp(interface);
    device->TraceConnectWithoutContext("MacTx", MakeCallback(&Sent));
    device->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&Delivered));
}

void
Settings()
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpDctcp::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(g_lab.mss));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(g_lab.bufferBytes));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(g_lab.bufferBytes));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocket::TcpNoDelay", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::WindowScaling", BooleanValue(true));
}

void
Stations()
{
    const uint32_t stations = g_lab.nodes + g_lab.switches;
    g_ports.resize(stations);
    g_routes.assign(g_lab.switches, std::vector<Ptr<PointToPointNetDevice>>(g_lab.nodes * g_lab.nodes));
    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    for (uint32_t number = 0; number < stations; number++)
    {
        g_stations.push_back(CreateObject<Node>());
        if (number < g_lab.nodes)
        {
            internet.Install(g_stations.back());
            Ptr<Socket> listener = Socket::CreateSocket(g_stations.back(), TcpSocketFactory::GetTypeId());
            listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
            listener->Listen();
            listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                        MakeCallback(&Accepted));
        }
    }
}

void
Link(uint32_t a, uint32_t portA, uint32_t b, uint32_t portB, uint64_t delayPs)
{
    Ptr<PointToPointChannel> channel = CreateObject<PointToPointChannel>();
    channel->SetAttribute("Delay", TimeValue(PicoSeconds(delayPs + g_lab.tailBytes * g_lab.bytePs)));
    for (auto [station, port] : {std::pair{a, portA}, std::pair{b, portB}})
    {
        Ptr<PointToPointNetDevice> device = MakePort(station, port, channel);
        if (station < g_lab.nodes)
        {
            StartNode(station, device);
        }
        else
        {
            device->SetReceiveCallback(MakeBoundCallback(&Forward, station - g_lab.nodes));
        }
    }
}

void
Connect(uint32_t host, uint32_t device)
{
    Ptr<Socket> socket = Socket::CreateSocket(g_stations[host], TcpSocketFactory::GetTypeId());
    socket->Bind();
    socket->SetConnectCallback(MakeCallback(&Connected), MakeCallback(&Refused));
    socket->SetRecvCallback(MakeBoundCallback(&AnswerArrived, &g_ends[socket]));
    socket->Connect(InetSocketAddress(Ipv4Address(FIRST_ADDRESS + device), PORT));
}

// Reads the lab; returns false at a statement that is not understood.
bool
ReadLab()
{
    std::string word;
    while (std::cin >> word)
    {
        if (word == "lab")
        {
            Lab& l = g_lab;
            std::cin >> l.nodes >> l.switches >> l.bytePs >> l.gapBytes >> l.tailBytes >> l.markBytes >> l.mss;
            std::cin >> l.bufferBytes >> l.requestBytes >> l.answerBytes >> l.depth;
            if (!std::cin || l.bytePs == 0)
            {
                return false;
            }
            Settings();
            Stations();
        }
        else if (word == "link")
        {
            uint32_t a, portA, b, portB;
            uint64_t delayPs;
            std::cin >> a >> portA >> b >> portB >> delayPs;
            if (!std::cin || a >= g_stations.size() || b >= g_stations.size() || portA > 65535 || portB > 65535)
            {
                return false;
            }
            Link(a, portA, b, portB, delayPs);
        }
        else if (word == "connection")
        {
            uint32_t host, device;
            std::cin >> host >> device;
            if (!std::cin || host >= g_lab.nodes || device >= g_lab.nodes)
            {
                return false;
            }
            Simulator::Schedule(PicoSeconds(0), &Connect, host, device);
        }
        else if (word == "route")
        {
            uint32_t number, from, to, port;
            std::cin >> number >> from >> to >> port;
            if (!std::cin || number >= g_lab.switches || from >= g_lab.nodes || to >= g_lab.nodes ||
                port >= g_ports[g_lab.nodes + number].size())
            {
                return false;
            }
            g_routes[number][from * g_lab.nodes + to] = g_ports[g_lab.nodes + number][port];
        }
        else
        {
            return false;
        }
    }
    return g_lab.nodes > 0;
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
    // One byte at 10 Gb/s takes 800 ps.
    Time::SetResolution(Time::PS);
    const double duration = argc > 1 ? std::strtod(argv[1], nullptr) : 0.0;
    if (!(duration > 0.0) || !ReadLab())
    {
        std::fprintf(stderr, "usage: f8_tcp SECONDS < LAB; the lab may have a statement that is not understood\n");
        return 2;
    }
    Simulator::Stop(PicoSeconds(static_cast<uint64_t>(duration * 1e12)));
    const double begin = CpuSeconds();
    Simulator::Run();
    const double cpu = CpuSeconds() - begin;
    std::printf("{\"ios\":%llu,\"packet_hops\":%llu,\"sent\":%llu,\"delivered\":%llu,"
                "\"events\":%llu,\"cpu_s\":%.6f}\n",
                static_cast<unsigned long long>(g_reads),
                static_cast<unsigned long long>(g_hops),
                static_cast<unsigned long long>(g_sent),
                static_cast<unsigned long long>(g_delivered),
                static_cast<unsigned long long>(Simulator::GetEventCount()),
                cpu);
    std::fflush(stdout);
    // The sockets still have data to send, so the program ends without taking the network apart.
    std::_Exit(0);
}
