# Makes what blktrace would record (this project's test machine may not: its debugfs is closed), for the real
# blkparse 1.2.0 to print: python3 blktrace.py; blkparse -i one > blkparse.txt;
# blkparse -q -i two > blkparse-two-devices.txt
import struct,sys
# The kernel's struct blk_io_trace (include/uapi/linux/blktrace_api.h), one file a CPU.
TC=dict(READ=1,WRITE=2,FLUSH=4,SYNC=8,QUEUE=16,REQUEUE=32,ISSUE=64,COMPLETE=128,FS=256,PC=512,NOTIFY=1024,AHEAD=2048,META=4096,DISCARD=8192,DRV=16384,FUA=32768)
TA=dict(Q=1,M=2,F=3,G=4,S=5,D=7,C=8,P=9,U=10,I=12,X=13,B=14,A=15)
seq=0
def ev(act,flags,t,sector,nbytes,pid,dev,cpu=0,err=0,pdu=b""):
    global seq; seq+=1
    a=act
    for f in flags: a|=TC[f]<<16
    return struct.pack("<IIQQIIIIIHH",0x65617407,seq,t,sector,nbytes,a,pid,dev,cpu,err,len(pdu))+pdu
def dev(ma,mi): return (ma<<20)|mi
def notify(kind,t,pid,d,pdu,cpu=0): return ev(kind,["NOTIFY"],t,0,0,pid,d,cpu,0,pdu)
def main(out,devs):
    o=b""
    d=dev(*devs[0])
    o+=notify(1,0,0,d,struct.pack("<II",1700000000,0)) # timestamp
    o+=notify(0,0,4242,d,b"fio\0")
    o+=notify(0,0,77,d,b"kworker/0:1H\0")
    t=1000
    def io(fl,sector,n,pid=4242,dt=20000,dd=None,merge=False):
        nonlocal o,t
        x=dd or d
        o+=ev(TA["Q"],["QUEUE","FS"]+fl,t,sector,n,pid,x); t+=700
        if merge:
            o+=ev(TA["M"],["QUEUE","FS"]+fl,t,sector,n,pid,x); t+=300; return
        o+=ev(TA["G"],["FS"]+fl,t,sector,n,pid,x); t+=400
        o+=ev(TA["P"],["FS"]+[],t,0,0,pid,x); t+=100
        o+=ev(TA["U"],["FS"],t,0,0,pid,x,pdu=struct.pack(">Q",1)); t+=100
        o+=ev(TA["I"],["FS"]+fl,t,sector,n,pid,x); t+=300
        o+=ev(TA["D"],["ISSUE","FS"]+fl,t,sector,n,77,x); t+=dt
        o+=ev(TA["C"],["COMPLETE","FS"]+fl,t,sector,n,0,x); t+=1000
    io(["READ","SYNC"],2048,4096)
    io(["READ","AHEAD"],2056,131072)
    io(["WRITE","SYNC"],8192,4096)
    io(["WRITE"],8200,4096,merge=True)
    io(["WRITE","FUA","SYNC"],16384,8192)
    io(["WRITE","FLUSH","SYNC"],0,0)
    io(["WRITE","FLUSH","FUA","SYNC","META"],24576,4096)
    io(["FLUSH"],0,0)
    io(["DISCARD","SYNC"],32768,1048576)
    o+=notify(2,t,4242,d,b"cfq  iolog test message\0")
    o+=ev(TA["A"],["READ","FS"],t,9000,4096,4242,d,pdu=struct.pack(">IIQ",dev(259,1),dev(259,0),5000))
    io(["READ"],9000,4096)
    o+=ev(TA["X"],["WRITE","FS"],t,9100,8192,4242,d,pdu=struct.pack(">Q",9108)); t+=100
    o+=ev(TA["Q"],["QUEUE","PC","READ"],t,0,36,4242,d,pdu=bytes([0x12,0,0,0,36,0])); t+=100
    if len(devs)>1:
        io(["READ"],64,4096,dd=dev(*devs[1]))
    t+=1_500_000_000
    io(["READ"],2064,512)
    open(out+".blktrace.0","wb").write(o)
main("one",[(8,0)])
main("two",[(8,0),(259,12)])
